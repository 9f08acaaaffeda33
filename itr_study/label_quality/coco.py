"""The captions of COCO, which CxC and ECCV Caption judge, and splits with label vectors alone.

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
from itr_study.encoders.ngrams import Ngrams, NgramVectors
from itr_study.features.captions import caption_vectors
from itr_study.features.dataset import exact_relevance
from itr_study.features.judged import judged_pairs
from itr_study.features.label_vectors import encode_label_vectors
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


def caption_split(dataset: RetrievalDataset, label_vectors: Sequence[str], absent: dict[str, str],
                  name: str = "test", folder: Path | None = None) -> EncodedSplit:
    """A split with its captions alone: label vectors, and no features of its images.

    Args:    label_vectors: names of LABEL_ENCODERS; absent: takes those that cannot be had, with
             the reason; name: of the split; folder: of caches, None = `<home>/features`.
    """
    split, folder = dataset.splits[name], home() / "features" if folder is None else folder
    encoded = {kind: attempt(f"{kind} of {dataset.name}", absent, partial(
        encode_label_vectors, dataset, (), (kind,), folder)) for kind in label_vectors}
    return EncodedSplit(
        name, split.image_of_text, np.zeros((len(split.image_ids), 1, 1, 0), np.float32),
        relevance=exact_relevance(dataset, name) if dataset.relevance else None,
        label_vectors={kind: splits[name][kind] for kind, splits in encoded.items() if splits},
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
              label_vectors: Sequence[str] = ("minilm", "cider", "texts"),
              truth: TruthSets | None = None, folder: Path | None = None) -> CocoCaptions:
    """COCO's test captions from `coco5k/` with label vectors; idf is of its dev captions.

    Args:    absent: takes those of `label_vectors` that cannot be had; truth: None = of the
             package eccv-caption; folder: of caches.
    Raises:  DataError where captions are missing, or are not those the ground truth speaks of;
             ValueError without the package.
    """
    root = find_root(root, "coco5k", marks=("testall_caps.txt",), obtain=COCO)
    truth = read_eccv() if truth is None else truth
    test = read_captions(root, "test")
    images = np.array([int(name) for name in test.image_ids])
    owners = [truth.coco.t2i[text][0] for text in truth.order.tolist()]
    if owners != images[test.image_of_text].tolist():
        raise DataError(f"{root}: the captions are not those of eccv-caption in its order "
                        f"({len(test.texts)} captions, {len(owners)} expected). {COCO}")
    encode = {"minilm": lambda: caption_vectors(test.texts, TEXT_ENCODERS["minilm"](),
                                                "coco5k-test", folder=folder),
              "cider": lambda: ngram_vectors(root, test.texts),
              "texts": lambda: np.array(test.texts, object)}
    encoded = {name: attempt(f"{name} of coco5k", absent, encode[name]) for name in label_vectors}
    split = EncodedSplit(
        "test", test.image_of_text, np.zeros((len(images), 1, 1, 0), np.float32),
        label_vectors={name: one for name, one in encoded.items() if one is not None})
    return CocoCaptions(split, test.texts, images, np.asarray(truth.order, np.int64), truth)


def ngram_vectors(folder: Path, texts: Sequence[str]) -> NgramVectors:
    """n-gram vectors of texts, their rarity counted in the validation captions of the folder."""
    dev = read_captions(folder, "dev")
    return Ngrams().fit(dev.texts, dev.image_of_text).encode(texts)
