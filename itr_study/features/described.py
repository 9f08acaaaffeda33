"""Texts as label sources read them: sentence vectors, or n-grams weighted by their rarity."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.batches import Described, JudgedPairs
from itr_study.encoders.ngrams import Ngrams
from itr_study.encoders.registry import TEXT_ENCODERS
from itr_study.features.texts import dataset_sentences


class AsWritten:
    """The texts themselves, for label sources that run a tool on them (METEOR, SPICE)."""

    name, version = "texts", 1


DESCRIBERS = TEXT_ENCODERS | {Ngrams.name: Ngrams, AsWritten.name: AsWritten}


def describe_texts(dataset: RetrievalDataset, labels: Sequence[str], judging: Sequence[str],
                   folder: Path, device: str = "cpu") -> dict[str, dict[str, Described]]:
    """Split -> name -> its texts described, all that is fitted being fitted on train.

    Args:    labels: names of DESCRIBERS that training reads, for all splits; judging: those that
             only evaluation reads, for all splits but train; folder: of caches.
    Raises:  ValueError for an unknown name; WeightsError for weights that cannot be found.
    """
    found: dict[str, dict[str, Described]] = {split: {} for split in dataset.splits}
    for name in dict.fromkeys([*labels, *judging]):
        check_choice("labels", name, DESCRIBERS)
        wanted = [split for split in dataset.splits if split != "train" or name in labels]
        described = (vectors(dataset, name, folder, device) if name in TEXT_ENCODERS
                     else COMPUTED[name](dataset, wanted))
        for split in wanted:
            found[split][name] = described[split]
    return found


def vectors(dataset: RetrievalDataset, name: str, folder: Path,
            device: str) -> dict[str, Described]:
    """Sentence vectors of every split, from the cache where they are there."""
    return dataset_sentences(dataset, TEXT_ENCODERS[name](device), folder)


def grams(dataset: RetrievalDataset, wanted: Sequence[str]) -> dict[str, Described]:
    """n-gram vectors of the wanted splits; computed in seconds, so kept nowhere."""
    train = dataset.splits["train"]
    ngrams = Ngrams().fit(train.texts, train.image_of_text)
    return {split: ngrams.encode(dataset.splits[split].texts) for split in wanted}


def as_written(dataset: RetrievalDataset, wanted: Sequence[str]) -> dict[str, Described]:
    """The texts of the wanted splits, (T,) of str."""
    return {split: np.array(dataset.splits[split].texts, object) for split in wanted}


COMPUTED = {Ngrams.name: grams, AsWritten.name: as_written}


def judged_pairs(dataset: RetrievalDataset, split: Split) -> dict[str, JudgedPairs]:
    """The judgements of a data set whose image and text both lie in a split."""
    image = {name: index for index, name in enumerate(split.image_ids)}
    text = {name: index for index, name in enumerate(split.text_ids)}
    found = {}
    for name, judged in dataset.judgements.items():
        here = np.array([i in image and t in text
                         for i, t in zip(judged.image_ids, judged.text_ids, strict=True)], bool)
        if here.any():
            part = judged.take(np.flatnonzero(here))
            found[name] = JudgedPairs(np.array([image[i] for i in part.image_ids]),
                                      np.array([text[t] for t in part.text_ids]), part)
    return found
