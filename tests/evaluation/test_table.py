"""The row papers print, in percent; percent itself."""

import doctest

import numpy as np
import pytest

from itr_study.evaluation import table
from itr_study.evaluation.table import RETRIEVAL, retrieval_table
from itr_study.metrics import Ranks, Truth, ranks, recall
from tests.metrics.sets import random_set


def test_examples_in_docstrings():
    result = doctest.testmod(table)
    assert result.attempted and not result.failed


def test_table_by_hand():
    table = retrieval_table(Ranks(i2t=np.array([1, 6, 11, 2]), t2i=np.array([1, 1, 5, 40, 10])))
    assert tuple(table) == RETRIEVAL
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


def test_the_table_is_recall_in_percent():
    scores, owner = random_set(1, images=40)
    table, fractions = retrieval_table(ranks(scores, owner)), recall(scores, Truth(owner))
    assert {name: 100 * value for name, value in fractions.items()} == {
        name: table[name] for name in fractions}
    assert table["rsum"] == sum(100 * value for value in fractions.values())
