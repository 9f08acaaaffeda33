"""Bad and strange input of every re-ranker: an error that says what to do, or finite numbers."""

from importlib import import_module
from weakref import ref

import numpy as np
import pytest
import torch

from itr_study.metrics import Scores, ranks
from itr_study.rerank import RERANKERS, Bank, fast_grid
from tests.rerank.sets import as_lists, cosines, orders

SCALES = ("gamma1", "gamma2", "lambda1", "lambda2")
every = pytest.mark.parametrize("name", RERANKERS)


def finite(scores):
    return all(bool(torch.isfinite(torch.as_tensor(matrix)).all()) for matrix in scores)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "25", True, 1e7, 1e-7])
def test_scales_of_fr_are_positive_numbers(scale, value):
    scores, owner = cosines(0)
    with pytest.raises(ValueError, match=f"{scale} must be"):
        RERANKERS["fast"](scores, **{scale: value})
    if isinstance(value, float):
        with pytest.raises(ValueError, match="gammas. must be"):
            fast_grid(scores, owner, *(([value], [1]) if scale.endswith("1") else ([1], [value])))


@pytest.mark.parametrize("scales", [(1500,) * 4, (1, 1500, 1500, 1), (1500, 1, 1, 1500),
                                    (1e6,) * 4, (1e-6,) * 4, (1e6, 1e-6, 1e-6, 1e6)])
def test_no_scale_overflows(scales):
    for matrix in (cosines(0)[0], 1e15 * np.sign(cosines(1)[0]), np.zeros((3, 4), np.float32)):
        assert finite(RERANKERS["fast"](matrix, *scales))


@every
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e16])
def test_scores_that_are_not_finite_are_refused_with_their_place(name, kind, bad):
    scores, owner = cosines(0)
    wrong = scores.copy()
    wrong[7, 30] = bad
    right, wrong = kind(scores), kind(wrong)
    for given in (wrong, Scores(right, wrong), Scores(wrong, right)):
        with pytest.raises(ValueError, match="must be finite.*at image 7, text 30.*a number below"):
            RERANKERS[name](given)
    with pytest.raises(ValueError, match="at image 7, text 30"):
        fast_grid(wrong, owner, [1], [1])


@every
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (3,), (2, 3, 4)])
def test_what_is_no_matrix_is_refused(name, shape):
    with pytest.raises(ValueError, match="n_images, n_texts|at least 1 x 1"):
        RERANKERS[name](np.zeros(shape))


@every
@pytest.mark.parametrize(("wrong", "message"), [
    (lambda s: s.tolist(), "numpy array or a torch tensor"), (lambda s: s + 1j, "real numbers"),
    (lambda s: np.ma.masked_less(s, 0), "masked")])
def test_what_is_not_made_of_numbers_is_refused(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        RERANKERS[name](wrong(cosines(0)[0]))


@every
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (1, 2), (30, 31)])
def test_one_query_and_one_item(name, shape):
    """Finite, and what stands alone is found first."""
    scores = cosines(0, images=31)[0][:shape[0], :shape[1]]
    found = RERANKERS[name](scores)
    assert finite(found) and found.i2t.shape == found.t2i.shape == shape
    assert [sorted(order) for order in orders(found)[0]] == [list(range(shape[1]))] * shape[0]
    owner = np.arange(shape[1]) % shape[0]
    if shape[1] >= shape[0]:
        expected = as_lists(ranks(Scores(found.i2t, found.t2i), owner))
        assert as_lists(ranks(RERANKERS[name](scores), owner)) == expected
        if shape[0] == 1:
            assert expected[1] == [1] * shape[1]


def test_one_query_and_equal_scales_make_all_scores_0():
    """Its sum is its own score: so says the docstring."""
    scores = cosines(0)[0][:1]
    assert (RERANKERS["fast"](scores).i2t == 0).all()
    assert (RERANKERS["fast"](scores, gamma1=5).i2t != 0).all()


@every
def test_constant_scores(name):
    """FR leaves all equal, so that every match is last, as without it. RR re-orders the first 15
    texts, which tie; MR puts them in order of index, as published code does."""
    owner = np.repeat(np.arange(10), 3)
    found = RERANKERS[name](np.full((10, 30), 0.5))
    assert finite(found)
    i2t = ranks(found, owner).i2t.tolist()
    first = {"fast": [28] * 10, "reciprocal": [13] * 5 + [28] * 5,
             "multi": list(range(1, 31, 3))}[name]
    assert i2t == first


@every
def test_a_constant_row_and_a_constant_column(name):
    scores, owner = cosines(3)
    scores[2], scores[:, 5] = 0.25, 0.25
    found = RERANKERS[name](scores)
    assert finite(found)
    assert as_lists(ranks(RERANKERS[name](scores), owner)) == as_lists(
        ranks(Scores(*found), owner))


@pytest.mark.parametrize(("name", "arguments"), [
    ("reciprocal", {"k_i2t": 1000, "k_t2i": 1000}), ("multi", {"k": 1000})])
def test_k_beyond_the_gallery_takes_all_of_it(name, arguments):
    scores, _ = cosines(4)
    all_of_it = dict.fromkeys(arguments, 36) | ({"k_t2i": 12} if "k_t2i" in arguments else {})
    assert orders(RERANKERS[name](scores, **arguments)) == orders(
        RERANKERS[name](scores, **all_of_it))


@pytest.mark.parametrize(("name", "arguments"), [
    *(("reciprocal", {k: bad}) for k in ("k_i2t", "k_t2i") for bad in (0, -1, 1.5, True)),
    *(("multi", {"k": bad}) for bad in (0, 2.0)),
    *(("multi", {w: bad}) for w in ("w1", "w2", "decay") for bad in (-0.1, np.nan, "1")),
    ("multi", {"decay": 0})])
def test_arguments_out_of_range_are_refused_by_name(name, arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        RERANKERS[name](cosines(0)[0], **arguments)


@pytest.mark.parametrize("siblings", [np.zeros(5, int), np.full(36, 12), np.repeat(0, 36)])
def test_siblings_that_do_not_fit_are_refused(siblings):
    with pytest.raises(ValueError, match="image_of_text|every image needs"):
        RERANKERS["reciprocal"](cosines(0)[0], siblings=siblings)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_any_type_is_re_ranked_by_its_own_numbers(name, dtype):
    scores, owner = cosines(5)
    scores = torch.from_numpy(np.sign(scores) if dtype == torch.int32 else scores).to(dtype)
    expected = RERANKERS[name](scores.double())
    given = [scores] if dtype == torch.bfloat16 else [scores, scores.numpy()]
    for one in given:
        assert as_lists(ranks(RERANKERS[name](one), owner)) == as_lists(ranks(expected, owner))
        assert orders(RERANKERS[name](one)) == orders(expected)


@every
def test_layout_writing_and_gradients_do_not_matter(name, recwarn):
    scores, owner = cosines(6)
    expected = as_lists(ranks(RERANKERS[name](scores), owner))
    frozen = scores.copy()
    frozen.flags.writeable = False
    for given in (frozen, np.asfortranarray(scores), np.repeat(scores, 2, axis=1)[:, ::2],
                  torch.from_numpy(scores.T.copy()).T,
                  torch.from_numpy(scores).requires_grad_()):
        found = RERANKERS[name](given)
        assert as_lists(ranks(found, owner)) == expected
        np.testing.assert_array_equal(np.asarray(found.i2t), RERANKERS[name](scores).i2t)
        np.testing.assert_array_equal(np.asarray(found.t2i), RERANKERS[name](scores).t2i)
    assert (frozen == cosines(6)[0]).all()
    assert not [str(warning.message) for warning in recwarn.list]


@every
def test_matches_that_do_not_fit_are_refused(name):
    scores, owner = cosines(7)
    with pytest.raises(ValueError, match="one entry per text: expected 36"):
        ranks(RERANKERS[name](scores), owner[:-1])


# Cosines

def test_multi_refuses_what_is_no_cosine_and_says_what_to_do():
    scores, _ = cosines(0)
    for given in (scores * 30, torch.from_numpy(scores * 30), Scores(scores, scores * 30)):
        with pytest.raises(ValueError, match=r"takes cosines.*found scores from .*unit=False"):
            RERANKERS["multi"](given)
    rounded = scores / np.abs(scores).max() * np.float32(1 + 1e-6)
    assert finite(RERANKERS["multi"](rounded))
    assert finite(RERANKERS["multi"](30 * scores, unit=False))


def test_the_share_of_a_sum_of_0_is_0():
    scores = np.array([[0.5, -0.25, 0.1], [-0.5, 0.25, 0.3]])  # texts 0 and 1 sum to 0
    found = RERANKERS["multi"](scores, unit=False, w1=100.0, w2=0.0)
    assert finite(found) and orders(found)[0] == [[2, 0, 1], [2, 1, 0]]
    never_liked = np.array([[-1.0, 0.5], [-1.0, 0.25]])
    assert finite(RERANKERS["multi"](never_liked))


# The bank

@pytest.mark.parametrize(("images", "texts"), [((5, 35), (12, 9)), ((5, 36), (11, 9)),
                                               ((36, 5), (12, 9)), ((12, 9), (5, 36))])
@pytest.mark.parametrize("pairs", [10**6, 100])
def test_a_bank_of_another_gallery_is_refused(images, texts, pairs, monkeypatch):
    scores, _ = cosines(0)
    monkeypatch.setattr(import_module("itr_study.rerank.fast"), "HELD", pairs)
    with pytest.raises(ValueError, match=r"12 images and 36 texts: .*\(B, 36\).*\(12, C\)"):
        RERANKERS["fast"](scores, bank=Bank(np.zeros(images), np.zeros(texts)))


@pytest.mark.parametrize(("pairs", "parts"), [(10**6, 2), (100, 5 + 6)])
def test_a_bank_may_make_its_scores_when_they_are_read(pairs, parts, monkeypatch):
    """Of 100 pairs at a time: for 12 images those of 8 texts, for 36 texts those of 2 images."""
    scores, images, texts = cosines(0)[0], cosines(1)[0], cosines(2)[0]
    monkeypatch.setattr(import_module("itr_study.rerank.fast"), "HELD", pairs)
    held = []

    def made(matrix, axis):
        def make(some):
            fresh = (matrix[:, some] if axis else matrix[some]).copy()
            assert not any(there() is not None for there in held)  # one at a time
            held.append(ref(fresh))
            return fresh

        return make

    bank = Bank(made(images, 1), made(texts, 0))
    found = RERANKERS["fast"](scores, bank=bank)
    expected = RERANKERS["fast"](scores, bank=Bank(images, texts))
    assert len(held) == parts and all((a == b).all() for a, b in zip(found, expected, strict=True))
    whole = [np.array_equal(bank.made(name), given)
             for name, given in (("images", images), ("texts", texts))]
    assert whole == [True, True]
    with pytest.raises(ValueError, match="Bank.texts must be finite"):
        RERANKERS["fast"](scores, bank=Bank(bank.images, lambda some: np.full((12, 9), np.nan)))
    with pytest.raises(ValueError, match=r"12 images and 36 texts: .*\(12, C\)"):
        RERANKERS["fast"](scores, bank=Bank(bank.images, made(texts[1:], 0)))


@pytest.mark.parametrize("bank", [np.zeros((5, 36)), Scores(*[np.zeros((12, 36))] * 2), "dev"])
def test_what_is_no_bank_is_refused(bank):
    with pytest.raises(ValueError, match="bank must be itr_study.rerank.Bank"):
        RERANKERS["fast"](cosines(0)[0], bank=bank)


def test_a_bank_holds_finite_numbers():
    good = np.zeros((12, 9))
    for bad in (np.full((5, 36), np.nan), np.zeros((0, 36)), np.zeros(36)):
        with pytest.raises(ValueError, match="Bank.images must be"):
            Bank(bad, good)
    with pytest.raises(ValueError, match="Bank.texts must be finite"):
        Bank(np.zeros((5, 36)), np.full((12, 9), np.inf))


@pytest.mark.parametrize("scales", [(1500,) * 4, (1, 1500, 1500, 1), (1e6, 1e-6, 1e-6, 1e6)])
def test_no_scale_overflows_beside_a_bank(scales):
    scores, owner = cosines(0)
    found = RERANKERS["fast"](scores, *scales, bank=Bank(cosines(1)[0], cosines(2)[0]))
    assert finite(found)
    assert as_lists(ranks(found, owner)) == as_lists(ranks(Scores(*found), owner))
