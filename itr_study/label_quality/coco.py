"""The captions of COCO, which CxC and ECCV Caption judge, and splits as label sources read them.

What is missing on a machine is recorded with its reason, never passed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from itr_study.data.base import DataError, RetrievalDataset
from itr_study.data.batches import EncodedSplit
from itr_study.data.precomputed import read_captions
from itr_study.data.roots import find_root
from itr_study.encoders import TEXT_ENCODERS
from itr_study.encoders.ngrams import Ngrams
from itr_study.features.captions import caption_vectors
from itr_study.features.dataset import exact_relevance
from itr_study.features.described import describe_texts, judged_pairs
from itr_study.files.paths import home
from itr_study.metrics.eccv import TruthSets, read_eccv

T = TypeVar("T")
COCO = ("Put testall_caps.txt and testall_ids.txt (the 25,000 captions of COCO's 5,000 test images "
        "in Karpathy's order, and their images) and dev_caps.txt, dev_ids.txt into coco5k/.")


def attempt(what: str, absent: dict[str, str], make: Callable[[], T]) -> T | None:
    """What `make` gives; None where it cannot be had here, the reason then being in `absent`."""
    try:
        return make()
    except ValueError as error:  # DataError and WeightsError too
        absent[what] = str(error)
        return None


def described_split(dataset: RetrievalDataset, labels: Sequence[str], absent: dict[str, str],
                    name: str = "test", folder: Path | None = None) -> EncodedSplit:
    """A split as label sources read it, without features of its images.

    Args:    labels: names of what describes texts; those that cannot be had are named in `absent`.
    """
    split, folder = dataset.splits[name], home() / "features" if folder is None else folder
    found = {label: attempt(f"{label} of {dataset.name}", absent, partial(
        describe_texts, dataset, (), (label,), folder)) for label in labels}
    return EncodedSplit(
        name, split.image_of_text, np.zeros((len(split.image_ids), 1, 1, 0), np.float32),
        relevance=exact_relevance(dataset, name) if dataset.relevance else None,
        labels={label: splits[name][label] for label, splits in found.items() if splits},
        judgements=judged_pairs(dataset, split))


@dataclass(frozen=True, eq=False)
class CocoCaptions:
    """The captions of COCO's 5,000 test images, their numbers in COCO, and three ground truths."""

    split: EncodedSplit
    texts: tuple[str, ...]
    image_ids: np.ndarray  # (I,) int64
    text_ids: np.ndarray  # (T,) int64
    truth: TruthSets


def read_coco(root: Path | str | None, absent: dict[str, str],
              labels: Sequence[str] = ("minilm", "cider", "texts"),
              truth: TruthSets | None = None, folder: Path | None = None) -> CocoCaptions:
    """COCO's test captions from `coco5k/`, described for label sources; idf is of its dev captions.

    Args:    absent: takes those of `labels` that cannot be had; truth: None = of the package
             eccv-caption; folder: of caches.
    Raises:  DataError where captions are missing, or are not those the ground truth speaks of;
             ValueError without the package.
    """
    where = find_root(root, "coco5k", marks=("testall_caps.txt",), obtain=COCO)
    truth = read_eccv() if truth is None else truth
    test = read_captions(where, "test")
    images = np.array([int(name) for name in test.image_ids])
    owners = [truth.coco.t2i[text][0] for text in truth.order.tolist()]
    if owners != images[test.image_of_text].tolist():
        raise DataError(f"{where}: the captions are not those of eccv-caption in its order "
                        f"({len(test.texts)} captions, {len(owners)} expected). {COCO}")
    describe = {"minilm": lambda: caption_vectors(test.texts, TEXT_ENCODERS["minilm"](),
                                                  "coco5k-test", folder=folder),
                "cider": lambda: fitted_grams(where, test.texts),
                "texts": lambda: np.array(test.texts, object)}
    found = {name: attempt(f"{name} of coco5k", absent, describe[name]) for name in labels}
    split = EncodedSplit("test", test.image_of_text, np.zeros((len(images), 1, 1, 0), np.float32),
                         labels={name: one for name, one in found.items() if one is not None})
    return CocoCaptions(split, test.texts, images, np.asarray(truth.order, np.int64), truth)


def fitted_grams(where: Path, texts: Sequence[str]) -> object:
    """n-grams of texts, their rarity counted in the validation captions beside them."""
    dev = read_captions(where, "dev")
    return Ngrams().fit(dev.texts, dev.image_of_text).encode(texts)
