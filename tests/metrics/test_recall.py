"""The table and the folds."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import Ranks, Truth, five_fold, folds, ranks, recall, retrieval_table
from tests.metrics.sets import random_set

# by this way, because the package shows the function of the same name
module = importlib.import_module("itr_study.metrics.recall")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def test_table_by_hand():
    table = retrieval_table(Ranks(i2t=np.array([1, 6, 11, 2]), t2i=np.array([1, 1, 5, 40, 10])))
    assert table == pytest.approx({
        "i2t_r1": 25, "i2t_r5": 50, "i2t_r10": 75, "i2t_medr": (2 + 6) / 2, "i2t_meanr": 20 / 4,
        "t2i_r1": 40, "t2i_r5": 60, "t2i_r10": 80, "t2i_medr": 5, "t2i_meanr": 57 / 5,
        "rsum": 25 + 50 + 75 + 40 + 60 + 80})


def test_perfect_scores_sum_to_600_and_recall_rises_with_k():
    owner = np.repeat(np.arange(20), 3)
    perfect = (np.arange(20)[:, None] == owner).astype(float)
    assert retrieval_table(ranks(perfect, owner))["rsum"] == 600
    scores, owner = random_set(0, images=40)
    table = retrieval_table(ranks(scores, owner))
    assert table["i2t_r1"] < table["i2t_r5"] < table["i2t_r10"]
    assert table["t2i_r1"] < table["t2i_r5"] < table["t2i_r10"]


def test_recall_is_the_table_as_fractions():
    scores, owner = random_set(1, images=40)
    table = retrieval_table(ranks(scores, owner))
    for key, value in recall(scores, Truth(owner)).items():
        assert 100 * value == pytest.approx(table[key])
    with pytest.raises(ValueError, match="k must be >= 1"):
        recall(scores, Truth(owner), ks=(0,))


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
        tables.append(retrieval_table(fold))
    expected = {key: sum(table[key] for table in tables) / 5 for key in tables[0]}
    assert five_fold(kind(scores), owner) == pytest.approx(expected)
    assert len({table["rsum"] for table in tables}) > 1
    assert all(isinstance(texts, slice) == ordered for _, texts, _ in folds(owner, 40))


def test_folds_must_be_equal():
    with pytest.raises(ValueError, match="41 images cannot be cut into 5 folds"):
        five_fold(*random_set(3, images=41))
