"""Numbers of any kind: what a metric reads gives what float64 does, anything else one sentence."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from itr_study.data.base import Judgements
from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import (
    Ranks,
    Truth,
    coherent,
    coverage,
    eccv_table,
    embedding_entropy,
    five_fold,
    head_correlation,
    kendall,
    mean_relevance,
    ndcg,
    rank_map,
    ranks,
    ranks_from_embeddings,
    recall,
    score_entropy,
)
from itr_study.metrics.attention import region_cosines, uniform_map
from itr_study.metrics.human import human_correlation
from tests.metrics.coco_sets import small_sets

RANDOM = np.random.default_rng(0)
IMAGES, TEXTS = RANDOM.normal(size=(6, 4)), RANDOM.normal(size=(12, 4))
IMAGES, TEXTS = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (IMAGES, TEXTS))
OWNER = np.repeat(np.arange(6), 2)
SCORES, HEADS = IMAGES @ TEXTS.T, RANDOM.normal(size=(3, 2, 5))
GRADED = np.where(OWNER == np.arange(6)[:, None], 1.0, RANDOM.random((6, 12)).round(2))


def readonly(values):
    values = values.copy()
    values.flags.writeable = False
    return values


KINDS = {  # all hold the same numbers, but for rounding
    "big-endian": lambda x: x.astype(">f8"), "big-endian single": lambda x: x.astype(">f4"),
    "longdouble": lambda x: x.astype(np.longdouble), "read-only": readonly,
    "turned": lambda x: x[::-1].copy()[::-1], "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2], "half": lambda x: x.astype(np.float16),
    "single": lambda x: x.astype(np.float32), "tensor": torch.from_numpy,
    "gradient": lambda x: torch.from_numpy(x.copy()).requires_grad_(),
    "bfloat16": lambda x: torch.from_numpy(x).bfloat16()}
READERS = {
    "ranks": (lambda x: ranks(x, OWNER).t2i, SCORES),
    "recall": (lambda x: list(recall(x, Truth(OWNER)).values()), SCORES),
    "ndcg": (lambda x: list(ndcg(x, Truth(OWNER)).values()), SCORES),
    "kendall": (lambda x: list(kendall(x, Truth(OWNER)).values()), SCORES),
    "score_entropy": (lambda x: score_entropy(x, OWNER).nats, SCORES),
    "entropy of images": (lambda x: embedding_entropy(x, TEXTS, OWNER).nats, IMAGES),
    "entropy of texts": (lambda x: embedding_entropy(IMAGES, x, OWNER).noise, TEXTS),
    "ranks of images": (lambda x: ranks_from_embeddings(x, TEXTS, OWNER).i2t, IMAGES),
    "ranks of texts": (lambda x: ranks_from_embeddings(IMAGES, x, OWNER).t2i, TEXTS),
    "rank_map": (rank_map, HEADS), "head_correlation": (head_correlation, HEADS),
    "region_cosines": (lambda x: region_cosines(x, HEADS), HEADS)}
REFUSED = {  # none of these is an array of real numbers
    "complex": lambda x: x + 0j, "text": lambda x: x.astype(str), "object": lambda x: x.astype("O"),
    "dates": lambda x: (100 * x).astype("datetime64[s]"), "list": lambda x: x.tolist(),
    "masked": lambda x: np.ma.masked_less(x, 0), "nothing": lambda x: None,
    "complex tensor": lambda x: torch.from_numpy(x + 0j)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_numbers_of_any_kind_are_read(reader, kind):
    read, given = READERS[reader]
    if kind in ("half", "bfloat16") and "entropy of" in reader:
        given = np.eye(*given.shape)[np.arange(len(given)) % given.shape[1]]  # of length 1 in half
    with warnings.catch_warnings(action="error"):
        found = read(KINDS[kind](given))
    rough = kind in ("half", "bfloat16")
    if rough and ("rank" in reader or reader in ("recall", "ndcg", "kendall")):
        assert np.shape(found) == np.shape(read(given))  # near scores may change places
    else:
        np.testing.assert_allclose(found, read(given), atol=0.05 if rough else 1e-5)


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("reader", READERS)
def test_what_holds_no_real_numbers_is_refused(reader, kind):
    read, given = READERS[reader]
    with pytest.raises(ValueError, match="must (be|not be masked)"):
        read(REFUSED[kind](given))


@given(st.permutations(["big-endian", "single", "tensor", "read-only", "longdouble", "turned"]))
def test_two_kinds_go_together(kinds):
    one, other = kinds[:2]
    found = ranks_from_embeddings(KINDS[one](IMAGES), KINDS[other](TEXTS), OWNER)
    np.testing.assert_array_equal(found.i2t, ranks(SCORES, OWNER).i2t)
    found = embedding_entropy(KINDS[one](IMAGES), KINDS[other](TEXTS), OWNER)
    np.testing.assert_allclose(found.nats, embedding_entropy(IMAGES, TEXTS, OWNER).nats, atol=1e-4)


@pytest.mark.parametrize("kind", ["complex", "text", "object", "dates", "masked"])
@pytest.mark.parametrize("metric", [ndcg, kendall, coherent, mean_relevance])
def test_relevance_is_of_real_numbers(metric, kind):
    """Cast to float32 the imaginary part, the text "1" and the mask would be gone."""
    truth = Truth(OWNER, 6, lambda images: REFUSED[kind](GRADED)[images])
    with pytest.raises(ValueError, match="relevance must (be real numbers|not be masked)"):
        metric(SCORES, truth)
    lists = Truth(OWNER, 6, lambda images: GRADED[images].tolist())
    assert metric(SCORES, lists) == metric(SCORES, Truth(OWNER, 6, GRADED.__getitem__))


@pytest.mark.parametrize("kind", ["complex", "text", "masked"])
def test_scores_of_judged_pairs_are_real_numbers(kind):
    rated = Judgements("expert", ("a",) * 3, ("b#0",) * 3, np.array([[1, 1], [2, 3], [3, 2]]),
                       np.zeros(3, bool), "c")
    with pytest.raises(ValueError, match="scores must"):
        human_correlation(REFUSED[kind](np.array([-0.1, 0.2, 0.3])), rated)


@pytest.mark.parametrize("bad", [
    [0, 1, 2], [1, -3, 2], [1.0, np.nan, 2.0], [], [[1, 2, 3]], 1, [0.5, 1.0, 1.0],
    np.ma.masked_equal([1, 2, 3], 2), np.array(["1", "2"]), np.array([1, 2j])])
def test_ranks_of_a_table_begin_at_1(bad):
    good, bad = np.array([1, 2, 3]), bad if isinstance(bad, np.ndarray) else np.array(bad)
    for best in (Ranks(bad, good), Ranks(good, bad)):
        with pytest.raises(ValueError, match="ranks must"):
            retrieval_table(best)
    assert retrieval_table(Ranks(good, good.astype(float)))["i2t_medr"] == 2


def test_without_a_k_nothing_is_measured():
    truth, (images, texts, sets) = Truth(OWNER), small_sets()
    for use in (lambda: recall(SCORES, truth, ks=[]), lambda: recall(SCORES, truth, ks=()),
                lambda: five_fold(SCORES, OWNER, 2, ks=[]),
                lambda: eccv_table(np.zeros((15, 45)), images, texts, sets, ks=[])):
        with pytest.raises(ValueError, match="ks is empty"):
            use()
    assert list(recall(SCORES, truth, ks=np.array([1, 3]))) == ["i2t_r1", "i2t_r3", "t2i_r1",
                                                               "t2i_r3"]


@pytest.mark.parametrize("n", [True, 2.0, np.float64(2), "2", None, 0, -1])
def test_folds_and_images_are_counted_in_whole_numbers(n):
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        five_fold(SCORES, OWNER, n)
    if n != -1:  # of a truth: as many as there are
        with pytest.raises(ValueError, match="n_images must be an integer|image_of_text must"):
            Truth(OWNER, n)
    assert five_fold(SCORES, OWNER, np.int64(2)) == five_fold(SCORES, OWNER, 2)
    assert Truth(OWNER, np.int32(6)).n_images == 6


@pytest.mark.parametrize("shape", [(6, 0), (0, 4)])
def test_vectors_have_a_length(shape):
    for use in (ranks_from_embeddings, embedding_entropy):
        with pytest.raises(ValueError, match="images must be|images and texts must be"):
            use(np.zeros(shape), np.zeros((12, shape[1])), OWNER)


def test_a_mask_may_be_read_only():
    mask = readonly(np.array([[True, True, False]]))
    with warnings.catch_warnings(action="error"):
        assert uniform_map(mask)[0, 0].tolist() == [0.5, 0.5, 0]
        found = coverage(KINDS["big-endian"](np.array([[[0.5, 0.5, 0.0]]])),
                         readonly(np.array([[[1.0], [1.0], [0.0]]])))
    assert found.tolist() == [1]
