"""A reader is held against label sources and trained losses, on the pairs that they rate."""

import numpy as np
import pandas as pd

from itr_study.lab.studies.nb10_explorers import judged_arms, label_scores, loss_scores
from itr_study.lab.studies.plans import choose
from itr_study.relevance import RELEVANCE
from tests.small import SmallData
from tests.studies.test_results import kept_run


def test_label_scores_are_those_of_every_pair():
    split = SmallData().splits["test"]
    split.label_vectors = {"minilm": np.random.default_rng(0).normal(
        size=(split.n_texts, 384)).astype(np.float32)}
    (name, scores), = label_scores(split).items()
    assert name == "labels: sentence, max"
    images, texts = (grid.ravel() for grid in np.indices(scores.shape))
    slow = RELEVANCE["sentence"](pooling="max").pairs(split, images, texts)
    np.testing.assert_allclose(scores.ravel(), slow, atol=1e-6)


def test_losses_are_those_of_notebook_13_where_rows_keep_what_people_judged():
    runs = judged_arms("flickr8k", choose("10_explorers", "quick"))
    assert [run.label for run in runs] == choose("13_when_to_forgive", "full").compared
    assert {run.config.seed for run in runs} == {0}
    assert judged_arms("scenes", choose("10_explorers", "quick")) == []


def test_scores_of_losses_are_those_that_their_rows_keep(evidence):
    row = kept_run(evidence) | {"arm": "info_nce"}
    (name, scores), = loss_scores(pd.DataFrame([row])).items()
    assert name == "InfoNCE" and scores.tolist() == [0.25, -0.5]
    assert loss_scores(pd.DataFrame()) == {}
