"""Label vectors: the texts of a data set in the form in which a label source compares them.

Sentence vectors, n-grams weighted by their rarity, or the texts themselves. Models never see them.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import LabelVectors
from itr_study.encoders.ngrams import Ngrams
from itr_study.encoders.registry import TEXT_ENCODERS
from itr_study.features.texts import dataset_sentences


class AsWritten:
    """The texts themselves, for label sources that run a tool on them (METEOR, SPICE)."""

    name, version = "texts", 1


LABEL_ENCODERS = TEXT_ENCODERS | {Ngrams.name: Ngrams, AsWritten.name: AsWritten}


def encode_label_vectors(dataset: RetrievalDataset, names: Sequence[str],
                         evaluation_names: Sequence[str], folder: Path, device: str = "cpu"
                         ) -> dict[str, dict[str, LabelVectors]]:
    """Split -> name -> label vectors of its texts; what is fitted is fitted on train.

    Args:    names: of LABEL_ENCODERS, those that training reads, for all splits;
             evaluation_names: those that only evaluation reads, for all splits but train;
             folder: of caches; device: where networks run.
    Raises:  ValueError for an unknown name; WeightsError for weights that cannot be found.
    """
    encoded: dict[str, dict[str, LabelVectors]] = {split: {} for split in dataset.splits}
    for name in dict.fromkeys([*names, *evaluation_names]):
        check_choice("label_vectors", name, LABEL_ENCODERS)
        splits = [split for split in dataset.splits if split != "train" or name in names]
        if name in TEXT_ENCODERS:  # from the cache, which holds all splits
            vectors = dataset_sentences(dataset, TEXT_ENCODERS[name](device), folder)
        else:
            vectors = COMPUTED[name](dataset, splits)
        for split in splits:
            encoded[split][name] = vectors[split]
    return encoded


def ngram_vectors(dataset: RetrievalDataset, splits: Sequence[str]) -> dict[str, LabelVectors]:
    """n-gram vectors of these splits; computed in seconds, so kept nowhere."""
    train = dataset.splits["train"]
    ngrams = Ngrams().fit(train.texts, train.image_of_text)
    return {split: ngrams.encode(dataset.splits[split].texts) for split in splits}


def as_written(dataset: RetrievalDataset, splits: Sequence[str]) -> dict[str, LabelVectors]:
    """The texts of these splits, (T,) of str."""
    return {split: np.array(dataset.splits[split].texts, object) for split in splits}


COMPUTED = {Ngrams.name: ngram_vectors, AsWritten.name: as_written}
