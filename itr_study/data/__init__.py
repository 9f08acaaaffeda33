"""Data sets: what a retrieval data set is, and one file per source. To add one: its file, and
its name here."""

from collections.abc import Callable
from pathlib import Path

from itr_study.checks import check_arguments, check_choice
from itr_study.data import flickr8k, folder, karpathy
from itr_study.data.base import RetrievalDataset
from itr_study.data.scenes import load as scenes

GENERATED = ("scenes",)  # made in seconds anywhere: no rows are committed, everything trains


DATASETS: dict[str, Callable[..., RetrievalDataset]] = {
    "scenes": scenes.load,
    "flickr8k": flickr8k.load,
    "flickr30k": karpathy.load_flickr30k,
    "coco": karpathy.load_coco,
    "folder": folder.load,
}


def load_dataset(name: str, root: Path | str | None = None, **options: object
                 ) -> RetrievalDataset:
    """Read and check a data set by name.

    Args:    name: one of DATASETS; root: folder of the data, or of several data sets (`DATA`),
             None for generated data; options: see `load` of that data set.
    Raises:  ValueError: unknown name or option; DataError: data missing or not usable.
    """
    check_choice("dataset", name, DATASETS)
    check_arguments(f"dataset {name!r}", DATASETS[name], options, skip=1)
    return DATASETS[name](root, **options)
