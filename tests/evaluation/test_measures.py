"""What runs are measured by beside recall: graded truth and people, against values by hand."""

import numpy as np
import pytest
import torch

from itr_study.data.batches import EncodedSplit, JudgedPairs
from itr_study.data.judgements import Judgements
from itr_study.evaluation import measures
from itr_study.metrics import METRICS, Truth

OWNER = np.array([0, 0, 1, 2])


def split(name="test", **more):
    return EncodedSplit(name, OWNER, np.zeros((3, 1, 1, 2), np.float32), **more)


def unit_vectors(seed=0):
    vectors = np.random.default_rng(seed).normal(size=(4, 384)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_columns_follow_the_data_set_and_the_split():
    assert measures.suite_columns("scenes", "dev") == (
        "i2t_ndcg_exact", "t2i_ndcg_exact", "i2t_tau_exact", "t2i_tau_exact",
        "i2t_cs100_exact", "t2i_cs100_exact")
    test, dev = (measures.suite_columns("flickr8k", split) for split in ("test", "dev"))
    assert test == (*dev, "human_expert_tau_c", "human_crowdflower_tau_b") and len(dev) == 12
    assert measures.suite_columns("flickr8k", "train") == ()
    assert measures.suite_columns("folder", "dev")[0] == "i2t_ndcg_cider"


def test_truth_is_that_of_the_label_source():
    vectors = unit_vectors()
    truth = measures.truths(split(label_vectors={"minilm": vectors}))
    assert set(truth) == {"sentence"}
    cosines = vectors @ vectors.T
    expected = np.stack([np.maximum(cosines[0], cosines[1]), cosines[2], cosines[3]])
    expected = (1 + expected) / 2
    expected[OWNER, np.arange(4)] = 1
    np.testing.assert_allclose(truth["sentence"].relevance(slice(0, 3)), expected, atol=1e-6)


def test_measures_in_percent_are_the_metrics_on_that_truth():
    graded = np.array([[1, 1, 0.3, 0.1], [0.2, 0.1, 1, 0.4], [0, 0.5, 0.2, 1]], np.float32)
    scores = torch.tensor([[0.9, 0.1, 0.4, 0.2], [0.3, 0.2, 0.8, 0.1], [0.5, 0.6, 0.1, 0.2]])
    table = measures.measure(scores, split(relevance=graded))
    found = METRICS["ndcg"](scores, Truth(OWNER, 3, graded.__getitem__))
    assert table["i2t_ndcg_exact"] == pytest.approx(100 * found["i2t_ndcg"])
    assert set(table) == set(measures.suite_columns("scenes", "test"))


def test_a_split_without_labels_and_train_have_no_suite():
    assert measures.measure(torch.zeros(3, 4), split()) == {}
    assert measures.measure(torch.zeros(3, 4), split("train", relevance=np.eye(3)[:, OWNER])) == {}


def test_people_are_asked_about_the_pairs_they_judged():
    """Scores in the order of the ratings agree fully, but for the pair of the image's own text."""
    judged = Judgements("crowdflower", ("a", "b", "c", "c"), ("x",) * 4,
                        np.array([[0.1], [0.5], [0.9], [1.0]]), np.array([False] * 3 + [True]), "b")
    pairs = JudgedPairs(np.array([0, 1, 2, 2]), np.array([2, 3, 0, 3]), judged)
    scores = torch.tensor([[0, 0, 0.1, 0], [0, 0, 0, 0.2], [0.3, 0, 0, -1.0]])
    table = measures.measure(scores, split(judgements={"crowdflower": pairs}))
    assert table == {"human_crowdflower_tau_b": pytest.approx(100)}
    table = measures.measure(-scores, split(judgements={"crowdflower": pairs}))
    assert table == {"human_crowdflower_tau_b": pytest.approx(-100)}
