"""Ranks by counting: against loops, against sorting, in any block size and type."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import Scores, ranks, ranks_from_embeddings
from tests.metrics.sets import random_set
from tests.oracles.recall import oracle_ranks

# by this way, because the package shows the function of the same name
module = importlib.import_module("itr_study.metrics.ranks")


def as_lists(found):
    return found.i2t.tolist(), found.t2i.tolist()


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 3 and not result.failed


def test_hand_worked():
    # image 0 owns texts 0, 1, 2: rivals 0.7 and 0.6 beat its best 0.6 (the tie counts) -> 3
    scores = np.array([[0.6, 0.1, 0.2, 0.7, 0.6], [0.6, 0.5, 0.1, 0.2, 0.8]])
    found = ranks(scores, np.array([0, 0, 0, 1, 1]))
    assert as_lists(found) == ([3, 1], [2, 2, 1, 2, 1])
    assert found.i2t.dtype == found.t2i.dtype == np.int64


@pytest.mark.parametrize("ties", [False, True])
def test_equals_slow_oracle(ties):
    for seed in range(60):
        scores, owner = random_set(seed, ties)
        assert as_lists(ranks(scores, owner)) == oracle_ranks(scores.tolist(), owner.tolist()), seed


def test_equals_sorting_where_nothing_ties():
    for seed in range(20):
        scores, owner = random_set(seed)
        place = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
        i2t = [place[i, owner == i].min() for i in range(len(scores))]
        place = np.argsort(np.argsort(-scores, axis=0), axis=0) + 1
        t2i = [place[image, text] for text, image in enumerate(owner)]
        assert as_lists(ranks(scores, owner)) == (i2t, t2i)


def test_constant_scores_rank_last():
    found = ranks(np.zeros((4, 12)), np.repeat(np.arange(4), 3))
    assert as_lists(found) == ([1 + 9] * 4, [4] * 12)


def test_other_texts_of_the_same_image_are_no_rivals():
    assert as_lists(ranks(np.zeros((1, 5)), np.zeros(5, int))) == ([1], [1] * 5)


@pytest.mark.parametrize("block", [1, 3, 16, 17, 100, 1000])
def test_block_size_changes_nothing(block):
    scores, owner = random_set(3, ties=True, images=300)
    assert as_lists(ranks(scores, owner, block=block)) == as_lists(ranks(scores, owner))
    assert as_lists(ranks(scores, owner)) == oracle_ranks(scores.tolist(), owner.tolist())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensor_and_array_agree(dtype):
    scores, owner = random_set(4, ties=True, images=50)
    tensor = torch.from_numpy(scores).to(dtype).requires_grad_()
    assert as_lists(ranks(tensor, torch.from_numpy(owner))) == as_lists(ranks(scores, owner))
    if dtype is torch.float16:
        assert as_lists(ranks(scores.astype(np.float16), owner)) == as_lists(ranks(scores, owner))


def test_half_precision_keeps_its_own_ties():
    scores = torch.tensor([[1.0, 1.001], [0.0, 2.0]], dtype=torch.bfloat16)  # both round to 1
    assert as_lists(ranks(scores, np.array([0, 1]))) == ([2, 1], [1, 1])


def test_layout_does_not_matter():
    scores, owner = random_set(5, images=60)
    expected = as_lists(ranks(scores, owner))
    assert as_lists(ranks(np.asfortranarray(scores), owner)) == expected
    assert as_lists(ranks(torch.from_numpy(scores.T.copy()).T, owner)) == expected
    assert as_lists(ranks(np.repeat(scores, 2, axis=1)[:, ::2], owner)) == expected


def test_scores_are_not_changed():
    scores, owner = random_set(6)
    before = scores.copy()
    scores.flags.writeable = False
    ranks(scores, owner)
    assert (scores == before).all()


def test_the_count_for_devices_equals_the_one_for_arrays():
    scores, owner = random_set(7, ties=True, images=50)
    best, own = scores.max(axis=1), scores[owner, np.arange(len(owner))]
    for a, b in zip(module.count_tensor(torch.from_numpy(scores), best, own, 0),
                    module.count_array(scores, best, own, 0), strict=True):
        assert (a == b).all()
    scores[3, 2] = np.nan
    for count, values in ((module.count_tensor, torch.from_numpy(scores)),
                          (module.count_array, scores)):
        with pytest.raises(ValueError, match="NaN.*image 13, text 2"):
            count(values, best, own, 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees():
    scores, owner = random_set(8, ties=True, images=1500)
    on_device = torch.from_numpy(scores).cuda()
    assert as_lists(ranks(on_device, owner)) == as_lists(ranks(scores, owner))


@pytest.mark.parametrize("where", ["match", "elsewhere"])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_nan_is_an_error(where, kind):
    scores, owner = random_set(9, images=30)
    text = 4
    image = owner[text] if where == "match" else (owner[text] + 1) % 30
    scores[image, text] = np.nan
    with pytest.raises(ValueError, match=f"NaN.*image {image}, text 4"):
        ranks(kind(scores), owner)


@pytest.mark.parametrize(("shape", "owner", "message"), [
    ((2, 3), [0, 0, 0], "every image needs at least one text; 1 have none.*image 1"),
    ((2, 3), [0, 1, 2], r"must lie in \[0, 2\).*0 to 2"),
    ((2, 3), [0, 1, -1], "must lie in.*-1 to 1"),
    ((2, 3), [0, 1], "expected 3.*got 2"),
    ((2, 3), [0.0, 1.0, 1.0], "integers.*float64"),
    ((2, 3), [[0, 1, 1]], r"1-dim.*\(1, 3\)"),
    ((3,), [0, 0, 0], r"n_images, n_texts.*\(3,\)"),
    ((0, 3), [0, 0, 0], "at least 1 x 1"),
])
def test_bad_input_is_refused(shape, owner, message):
    with pytest.raises(ValueError, match=message):
        ranks(np.zeros(shape), np.array(owner))


@pytest.mark.parametrize("block", [-1, 0, 2.5, True])
def test_a_block_that_is_no_count_is_refused(block):
    """Range would give no block at all: every match would rank first."""
    scores, owner = random_set(0)
    with pytest.raises(ValueError, match="block must be an integer >= 1"):
        ranks(scores, owner, block=block)
    with pytest.raises(ValueError, match="block must be an integer >= 1"):
        ranks_from_embeddings(scores.T, scores.T, np.arange(scores.shape[1]), block=block)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64, torch.int32,
                                   torch.int64])
def test_whole_numbers_beyond_float32_keep_their_order(dtype):
    scores = np.arange(32).reshape(4, 8) + 2**27  # float32 knows every 16th of these
    owner = np.arange(8) % 4
    typed = (torch.from_numpy(scores).to(dtype) if isinstance(dtype, torch.dtype)
             else scores.astype(dtype))
    assert as_lists(ranks(typed, owner)) == as_lists(ranks(scores - 2.0**27, owner))


@pytest.mark.parametrize("block", [7, 64, 256])
@pytest.mark.parametrize("size", [3, 64, 300])
def test_embeddings_equal_the_matrix(block, size):
    rng = np.random.default_rng(block)
    owner = random_set(block, images=200)[1]
    # small integers: products are exact, so the ties of the matrix are the ties of the blocks
    images = rng.integers(-2, 3, (200, size)).astype(np.float32)
    texts = images[owner] + rng.integers(-2, 3, (len(owner), size)).astype(np.float32)
    expected = as_lists(ranks(images @ texts.T, owner))
    assert as_lists(ranks_from_embeddings(images, texts, owner, block=block)) == expected
    tensors = torch.from_numpy(images).half(), torch.from_numpy(texts).half()
    with torch.autocast("cpu", torch.bfloat16):
        assert as_lists(ranks_from_embeddings(*tensors, owner, block=block)) == expected


@pytest.mark.parametrize("size", [5, 50, 513])
@pytest.mark.parametrize(("n_images", "each"), [(300, 5), (3, 1), (7, 3)])
def test_equal_embeddings_tie_whatever_their_place(size, n_images, each):
    rng = np.random.default_rng(size)
    owner = np.repeat(np.arange(n_images), each)
    images = np.tile(rng.standard_normal((1, size), dtype=np.float32), (n_images, 1))
    texts = np.tile(rng.standard_normal((1, size), dtype=np.float32), (len(owner), 1))
    found = ranks_from_embeddings(images, texts, owner)
    assert as_lists(found) == ([1 + len(owner) - each] * n_images, [n_images] * len(owner))


def test_a_query_meets_its_match_however_products_are_rounded(monkeypatch):
    """Else a match might stand below its own score, on rank 0."""
    rng = np.random.default_rng(0)
    images, texts, owner = rng.random((5, 4)), rng.random((9, 4)), np.arange(9) % 5
    rounded = module.own_products

    def higher(*arguments):
        return rounded(*arguments) + 10

    monkeypatch.setattr(module, "own_products", higher)
    found = ranks_from_embeddings(images, texts, owner, block=2)
    assert found.i2t.tolist() == [1] * 5 and found.t2i.tolist() == [1] * 9


def test_bad_embeddings_are_refused():
    with pytest.raises(ValueError, match=r"\(2, 3\), \(4, 5\)"):
        ranks_from_embeddings(np.zeros((2, 3)), np.zeros((4, 5)), np.array([0, 0, 1, 1]))
    bad = np.ones((2, 3))
    bad[1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN.*image 1"):
        ranks_from_embeddings(bad, np.ones((2, 3)), np.array([0, 1]))


@pytest.mark.parametrize("pair", [False, True])
def test_a_block_is_as_large_as_asked_for(monkeypatch, pair):
    """It bounds the memory; results are the same in any."""
    scores, owner = random_set(3, images=50)
    sizes, count = [], module.count_array

    def counting(piece, *arguments):
        sizes.append(len(piece))
        return count(piece, *arguments)

    monkeypatch.setattr(module, "count_array", counting)
    ranks(Scores(scores, scores.copy()) if pair else scores, owner, block=20)
    assert sizes == [20, 20, 10] * (2 if pair else 1)
