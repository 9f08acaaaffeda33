"""What is kept of the scores of a test split: judged pairs in their order, first results."""

import numpy as np
import pytest
import torch

from itr_study.data.base import Judgements
from itr_study.data.batches import EncodedSplit, JudgedPairs
from itr_study.evaluation.measures import RESULTS, kept_of, sampled
from itr_study.metrics import Scores

OWNER = np.repeat(np.arange(150), 3)
SCORES = np.random.default_rng(0).normal(size=(150, 450)).astype(np.float32)
PAIRS = [(149, 7), (3, 0), (3, 449), (80, 7)]  # in no order


def split(name="test", collection="expert"):
    judged = Judgements(collection, ("a",) * 4, ("b",) * 4, np.ones((4, 3)), np.zeros(4, bool), "c")
    pairs = JudgedPairs(*np.array(PAIRS).T, judged)
    return EncodedSplit(name, OWNER, np.zeros((150, 1, 1, 2), np.float32),
                        judgements={collection: pairs})


def test_judged_pairs_have_their_scores_in_their_order():
    kept = kept_of(torch.from_numpy(SCORES), split(), "flickr8k")["judged_expert"]
    assert kept.dtype == np.float16
    assert kept.tolist() == [float(np.float16(SCORES[image, text])) for image, text in PAIRS]
    assert kept.tolist() == pytest.approx([SCORES[pair] for pair in PAIRS], rel=1e-3)


def test_of_two_matrices_the_one_of_images_is_kept():
    kept = kept_of(Scores(SCORES, -SCORES), split(), "flickr8k")
    assert kept["judged_expert"].tolist() == [float(np.float16(SCORES[pair])) for pair in PAIRS]
    query = kept["t2i_queries"][5]
    assert kept["t2i_first"][5, 0] == SCORES[:, query].argmin()


def test_the_crowds_many_pairs_and_other_splits_are_not_kept():
    assert not [name for name in kept_of(SCORES, split(collection="crowdflower"), "flickr8k")
                if name.startswith("judged")]
    assert kept_of(SCORES, split("dev"), "flickr8k") == {}
    assert set(kept_of(SCORES, split(), "scenes")) == {
        "i2t_queries", "i2t_first", "t2i_queries", "t2i_first"}


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
def test_the_first_results_are_those_of_a_sorted_list(make):
    """Best first; of equal scores the first in the split: rounded scores have many."""
    scores = SCORES.round(1)
    kept = kept_of(make(scores), split(), "flickr8k")
    for direction, lists in (("i2t", scores), ("t2i", scores.T)):
        queries, results = kept[f"{direction}_queries"], kept[f"{direction}_first"]
        assert queries.dtype == results.dtype == np.int32
        assert len(queries) == 100 and results.shape == (100, RESULTS)
        for query, ten in zip(queries, results, strict=True):
            order = sorted(range(lists.shape[1]), key=lambda j, row=lists[query]: (-row[j], j))
            assert ten.tolist() == order[:10]


def test_the_sample_of_queries_is_the_same_for_ever():
    assert sampled(1000)[:5].tolist() == [1, 14, 27, 31, 45] and len(sampled(1000)) == 100
    assert (np.diff(sampled(5000)) > 0).all() and sampled(5000)[-1] < 5000
    assert sampled(7).tolist() == list(range(7))  # all, where there are no more


def test_a_short_gallery_has_fewer_results():
    small = EncodedSplit("test", np.array([0, 0, 1]), np.zeros((2, 1, 1, 2), np.float32))
    kept = kept_of(np.array([[1.0, 3, 2], [3, 1, 2]]), small, "scenes")
    assert kept["i2t_first"].tolist() == [[1, 2, 0], [0, 2, 1]]
    assert kept["t2i_first"].tolist() == [[1, 0], [0, 1], [0, 1]]
