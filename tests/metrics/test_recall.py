"""Recall and its folds."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import (
    Ranks,
    Scores,
    Truth,
    five_fold,
    folds,
    ranks,
    recall,
    recall_of_ranks,
)
from tests.metrics.sets import random_set

# by this way, because the package shows the function of the same name
module = importlib.import_module("itr_study.metrics.recall")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def test_recall_reads_the_ranks_in_both_directions():
    best = Ranks(i2t=np.array([1, 6, 11, 2]), t2i=np.array([1, 1, 5, 40, 10]))
    assert recall_of_ranks(best, (1, 6)) == {
        "i2t_r1": 0.25, "i2t_r6": 0.75, "t2i_r1": 0.4, "t2i_r6": 0.6}
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        recall(np.eye(2), Truth(np.array([0, 1])), ks=(0,))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_five_fold_equals_five_separate_tests(ordered, kind):
    scores, owner = random_set(2, images=40)
    if ordered:
        owner = np.sort(owner)
    tables = []
    for fold in range(5):
        images = np.arange(8 * fold, 8 * fold + 8)
        texts = np.flatnonzero(np.isin(owner, images))
        fold = ranks(scores[np.ix_(images, texts)], owner[texts] - images[0])
        tables.append(recall_of_ranks(fold))
    expected = {key: sum(table[key] for table in tables) / 5 for key in tables[0]}
    assert five_fold(kind(scores), owner) == pytest.approx(expected)
    assert len({table["i2t_r5"] for table in tables}) > 1
    assert all(isinstance(texts, slice) == ordered for _, texts, _ in folds(owner, 40))


def test_a_fold_is_ranked_as_it_is_re_ranked():
    scores, owner = random_set(3, images=20)
    turned = five_fold(scores, owner, rerank=lambda fold: Scores(-fold.i2t, -fold.t2i))
    assert turned == five_fold(-scores, owner) != five_fold(scores, owner)
    sizes = []
    five_fold(scores, owner, 4, rerank=lambda fold: sizes.append(fold.shape[0]) or fold)
    assert sizes == [5, 5, 5, 5]


def test_folds_differ_by_one_image_at_most():
    parts = list(folds(np.repeat(np.arange(23), 2), 23))
    assert [images.stop - images.start for images, *_ in parts] == [5, 5, 5, 4, 4]
    assert [texts.stop - texts.start for _, texts, _ in parts] == [10, 10, 10, 8, 8]
    with pytest.raises(ValueError, match="4 images cannot be cut into 5 folds; take 1 to 4"):
        five_fold(*random_set(3, images=4))
