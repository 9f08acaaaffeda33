"""Queries that are shown, and what several models find for them."""

import numpy as np
import pytest

from itr_study.evaluation.search import Searcher
from itr_study.explorers import (
    easy_to_hard,
    image_queries,
    obvious_errors,
    show_source,
    side_by_side,
)
from itr_study.losses import LOSSES
from itr_study.runs.data import dataset_of, encoded_data
from itr_study.runs.run import build_model
from tests.small_runs import SMALL


def test_an_easy_a_middling_and_a_hard_query_are_chosen():
    assert easy_to_hard(np.array([9, 1, 5, 3, 7])) == [1, 2, 4]  # of ranks 1, 5, 7
    assert easy_to_hard(np.array([2])) == [0, 0, 0]


def test_models_answer_the_same_queries_one_after_the_other():
    data, dataset = encoded_data(SMALL), dataset_of(SMALL)
    searchers = {name: Searcher(build_model(SMALL.with_(seed=seed), data.inputs), dataset, data)
                 for seed, name in enumerate(("one", "two + more"))}
    relevance = searchers["one"].relevance
    answers, table = side_by_side(searchers, image_queries, [0, 3], relevance)
    assert [answer.title for answer in answers] == ["one", "two\n+ more"] * 2
    assert list(table["query"].unique()) == [0, 3] and len(table) == 4 * 5
    first = table[(table.model == "one") & (table["query"] == 3)]
    best = searchers["one"].scores[3].argsort()[::-1][:5]
    assert list(first.relevance) == pytest.approx(relevance[3, best])
    wrong = table[~table.match.astype(bool) & (table.relevance < 0.5)]
    assert obvious_errors(table, 0.5) == (f"{(wrong.model == 'one').sum()} by one, "
                                          f"{(wrong.model == 'two + more').sum()} by two + more")


def test_the_source_of_a_loss_is_shown_without_its_indent():
    code = show_source(LOSSES["topk"].forward)
    assert code.data.startswith("def forward(self, scores") and "<span" in code._repr_html_()
