"""Data sets by name. To add one: its file, which ends in its record, and that record here."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from itr_study.checks import Registry, check_arguments
from itr_study.data import cub, flickr8k, folder, karpathy, precomputed
from itr_study.data.base import DataError, DatasetRecord, RetrievalDataset, find_root
from itr_study.data.scenes import load as scenes

DATASETS: Registry[DatasetRecord] = Registry("dataset", (
    scenes.SCENES,
    flickr8k.FLICKR8K, karpathy.FLICKR30K, karpathy.COCO, cub.CUB, folder.FOLDER))

TYPES = {bool: "true or false", str: "a word", int: "an integer", float: "a number"}


def load_dataset(name: str, root: Path | str | None = None, **options: object) -> RetrievalDataset:
    """Read and check a data set by name.

    Args:    name: one of DATASETS; root: folder of the data, or of several data sets (`DATA`),
             None for generated data; options: see `load` of that data set.
    Raises:  ValueError: unknown name or option; DataError: data missing or not usable.
    """
    check_options(name, options)
    return DATASETS[name].load(root, **options)


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Refuse an option that `load` of a data set does not have, or of another type."""
    check_arguments(f"dataset {name!r}", DATASETS[name].load, options, skip=1)
    kinds = get_type_hints(DATASETS[name].load)
    for option, value in options.items():
        kind = kinds.get(option, object)
        try:
            TypeAdapter(kind).validate_python(
                value.item() if isinstance(value, np.generic) else value, strict=kind in TYPES)
        except ValidationError as error:
            raise ValueError(f"{option} of dataset {name!r} must be {TYPES.get(kind, kind)}, got "
                             f"{value!r}") from error


def check_root(name: str, root: Path | str | None) -> None:
    """Refuse a folder for generated data: it lies in none, so another data set was meant."""
    if root is not None and DATASETS[name].generated:
        raise ValueError(f"{name} is generated and takes no folder of data, got {root}; name the "
                         "data set that lies there: --dataset folder (own pictures), coco, ...")


def brings_features(name: str, root: Path | str | None) -> bool:
    """Tell by the names of files whether published features lie in the folder of a data set."""
    record = DATASETS[name]
    if not record.features or root is None:
        return False
    try:
        folder = find_root(root, name, also=record.folders[1:], marks=("*_ims.npy",))
    except DataError:
        return False
    return precomputed.lies_in(folder)


def features_beside(name: str, root: Path | str | None) -> dict[str, object]:
    """Return the option of a data set that reads published features in its folder, if any lie."""
    return {"features": DATASETS[name].features} if brings_features(name, root) else {}
