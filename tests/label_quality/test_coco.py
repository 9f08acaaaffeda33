"""What cannot be had is recorded; splits carry label vectors."""

import numpy as np
import pytest

from itr_study.data.base import DataError, RetrievalDataset, Split
from itr_study.lab.label_quality.judges import attempt, caption_split
from tests.label_quality.judged_sets import EXACT, OWNER, TEXTS


def test_what_cannot_be_had_is_recorded_with_its_reason_and_bugs_are_not():
    absent = {}
    assert attempt("one", absent, lambda: 1) == 1 and not absent
    def refuse():
        raise DataError("there is no folder")
    assert attempt("two", absent, refuse) is None
    assert absent == {"two": "there is no folder"}
    with pytest.raises(ZeroDivisionError):
        attempt("three", absent, lambda: 1 / 0)


def test_a_split_has_label_vectors_without_features_and_gaps_are_named(tmp_path):
    split = Split("test", ("a", "b", "c"), tuple("uvwxyz"), TEXTS, OWNER)
    train = Split("train", ("d", "e", "f"), tuple("klmnop"), TEXTS, OWNER)
    data = RetrievalDataset("small", {"train": train, "test": split}, lambda name: None, "f" * 64,
                            relevance=lambda split: np.minimum(EXACT, 0.999) * (
                                OWNER != np.arange(3)[:, None]) + (OWNER == np.arange(3)[:, None]))
    absent = {}
    found = caption_split(data, ("cider", "word2vec"), absent, folder=tmp_path)
    assert found.n_images == 3 and list(found.label_vectors) == ["cider"]
    assert list(absent) == ["word2vec of small"] and "label_vectors" in absent["word2vec of small"]
    np.testing.assert_allclose(found.relevance[0], EXACT[0])
