"""Data sets: what a retrieval data set is, and one file per source. To add one: its file, which
ends in its record, and that record here."""

import inspect
from pathlib import Path

from itr_study.data import flickr8k, folder, karpathy
from itr_study.data.base import RetrievalDataset
from itr_study.data.record import DatasetRecord
from itr_study.data.scenes import load as scenes

DATASETS: dict[str, DatasetRecord] = {record.name: record for record in (
    scenes.SCENES,
    flickr8k.FLICKR8K,
    karpathy.FLICKR30K,
    karpathy.COCO,
    folder.FOLDER,
)}


def load_dataset(name: str, root: Path | str | None = None, **options: object
                 ) -> RetrievalDataset:
    """Read and check a data set by name.

    Args:    name: one of DATASETS; root: folder of the data, or of several data sets (`DATA`),
             None for generated data; options: see `load` of that data set.
    Raises:  ValueError: unknown name or option; DataError: data missing or not usable.
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(DATASETS)}")
    load = DATASETS[name].load
    known = [option for option in inspect.signature(load).parameters if option != "root"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(f"data set {name} has no option {', '.join(unknown)}; "
                         f"its options are {', '.join(known) or 'none'}")
    return load(root, **options)
