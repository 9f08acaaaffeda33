"""Truth: index lists and relevance in blocks."""

import doctest

import numpy as np
import pytest

import itr_study.metrics.truth as module
from itr_study.metrics import (
    Positives,
    Truth,
    class_based,
    coherent,
    kendall,
    map_at_r,
    mean_relevance,
    ndcg,
    r_precision,
    recall,
)
from tests.metrics.sets import random_set


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def test_positives_are_the_matches_of_each_query():
    owner = random_set(0)[1]
    truth = Truth(owner)
    texts, images = truth.positives("i2t"), truth.positives("t2i")
    assert len(texts) == truth.n_images and len(images) == truth.n_texts
    assert all(texts[i].tolist() == np.flatnonzero(owner == i).tolist() for i in range(len(texts)))
    assert all(images[t].tolist() == [owner[t]] for t in range(len(images)))
    with pytest.raises(IndexError, match="got -1"):
        texts[-1]
    with pytest.raises(ValueError, match="i2t, t2i"):
        truth.positives("both")


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_relevance_in_blocks_is_the_whole(block, monkeypatch):
    monkeypatch.setattr(module, "IMAGES", block)
    owner = random_set(1)[1]
    truth = Truth(owner)
    whole = np.concatenate([truth.relevance(part) for part in truth.blocks()])
    assert (whole == (np.arange(truth.n_images)[:, None] == owner)).all()
    assert all(part.stop - part.start <= block for part in truth.blocks())


def test_graded_relevance_is_asked_block_by_block():
    values = np.arange(6).reshape(2, 3) / 10
    truth = Truth(np.array([0, 1, 1]), graded=lambda images: values[images])
    assert (truth.relevance(slice(1, 2)) == values[1:]).all()
    wrong = Truth(np.array([0, 1, 1]), graded=lambda images: values)
    with pytest.raises(ValueError, match=r"must be \(1, 3\), got \(2, 3\)"):
        wrong.relevance(slice(0, 1))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8])
def test_any_type_of_integer_will_do(dtype):
    truth = Truth(np.array([1, 0, 1], dtype))
    assert truth.image_of_text.dtype == np.int64 and truth.n_images == 2
    assert truth.positives("i2t")[1].tolist() == [0, 2]


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(image_of_text=np.array([0, 2])), "every image needs at least one text"),
    (dict(image_of_text=np.array([0, 1]), n_images=3), "every image needs at least one text"),
    (dict(image_of_text=np.array([0, 1]), n_images=1), "must lie in"),
    (dict(image_of_text=np.array([], int)), "non-empty"),
])
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Truth(**arguments)


@pytest.mark.parametrize("metric", [recall, map_at_r, r_precision, ndcg, kendall, coherent,
                                    mean_relevance, lambda *given: class_based(*given, [0, 1])])
@pytest.mark.parametrize("truth", [np.array([0, 1]), [0, 1], np.eye(2), None])
def test_what_is_no_truth_is_refused(metric, truth):
    with pytest.raises(ValueError, match=f"a Truth.image_of_text., got a {type(truth).__name__}$"):
        metric(np.eye(2), truth)


def test_some_lists_are_taken_in_their_order():
    lists = Positives(np.array([0, 2, 2, 5]), np.array([4, 1, 7, 0, 3]))
    taken = lists.take(np.array([2, 0, 1, 2]))
    assert [taken[q].tolist() for q in range(len(taken))] == [[7, 0, 3], [4, 1], [], [7, 0, 3]]
    assert len(lists.take(np.zeros(0, int))) == 0
