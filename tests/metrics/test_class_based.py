"""R@1 and R-Precision by class: by hand, against sorting, in little memory."""

import tracemalloc

import numpy as np
import pytest
import torch

import itr_study.metrics.retrieval_sets as module
from itr_study.metrics import Scores, Truth, class_based, r_precision, recall
from itr_study.rerank import RERANKERS
from tests.metrics.sets import random_set
from tests.oracles.class_based import HAND, oracle


def random_classes(seed, images):
    """(I,) few classes of differing size, numbered with gaps."""
    return np.random.default_rng(seed).integers(0, max(2, images // 4), images) * 3 + 5


@pytest.mark.parametrize(("scores", "owner", "classes", "expected"), HAND)
def test_hand_worked_values(scores, owner, classes, expected):
    assert oracle(scores, owner, classes) == pytest.approx(expected)
    truth = Truth(np.array(owner), len(scores))
    assert class_based(np.array(scores), truth, np.array(classes)) == pytest.approx(expected)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("pairs", [1, 200, module.PAIRS])
def test_equals_the_slow_oracle_whatever_the_blocks(monkeypatch, ties, pairs):
    monkeypatch.setattr(module, "PAIRS", pairs)
    for seed in range(8):
        scores, owner = random_set(seed, ties)
        classes = random_classes(seed, len(scores))
        ours = class_based(scores, Truth(owner), classes)
        assert ours == pytest.approx(oracle(scores.tolist(), owner.tolist(), classes.tolist()))


def test_of_classes_of_one_image_it_is_recall_and_r_precision():
    scores, owner = random_set(3)
    truth = Truth(owner)
    found = class_based(scores, truth, np.arange(truth.n_images)[::-1])
    expected = recall(scores, truth, ks=(1,)) | r_precision(scores, truth)
    assert found == pytest.approx({name.replace("_r1", "_class_r1").replace(
        "_r_precision", "_class_rp"): value for name, value in expected.items()})


def test_classes_may_be_any_whole_numbers():
    scores, owner = random_set(6, images=20)
    truth, classes = Truth(owner), random_classes(2, 20)
    for other in (classes - 10 ** 12, 10 ** 9 * classes, classes.astype(np.uint8)):
        assert class_based(scores, truth, other) == class_based(scores, truth, classes)


def test_of_two_matrices_each_direction_reads_its_own():
    scores, owner = random_set(4, images=20)
    truth, classes = Truth(owner), random_classes(0, 20)
    other = np.random.default_rng(9).permutation(scores)
    i2t, t2i = (class_based(one, truth, classes) for one in (scores, other))
    both = class_based(Scores(scores, other), truth, classes)
    assert both == {name: (i2t if name.startswith("i2t") else t2i)[name] for name in both}
    assert i2t != t2i


def test_lazy_scores_and_tensors_give_the_same():
    scores, owner = random_set(5, ties=True, images=30)
    truth, classes = Truth(owner), random_classes(1, 30)
    assert class_based(torch.from_numpy(scores), truth, torch.from_numpy(classes)) == class_based(
        scores, truth, classes)
    lazy = RERANKERS["fast"](scores / 4)
    expected = class_based(Scores(*RERANKERS["fast"](scores / 4)), truth, classes)
    assert class_based(lazy, truth, classes) == expected


def test_no_list_of_all_results_is_held():
    """The order of all results of all queries would be 25 MB, the scores are 13."""
    owner = np.repeat(np.arange(560), 10)
    scores = np.random.default_rng(0).standard_normal((560, 5600), np.float32)
    truth, classes = Truth(owner), np.arange(560) // 10
    tracemalloc.start()
    class_based(scores, truth, classes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6, f"{peak:,} bytes"


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (7, 19), (39, 39)])
def test_nan_is_refused_with_its_place(monkeypatch, place):
    monkeypatch.setattr(module, "PAIRS", 120)  # blocks of three queries
    truth, classes = Truth(np.arange(40)), np.arange(40) // 4
    nan = np.random.default_rng(0).normal(size=(40, 40))
    right = nan.copy()
    nan[place] = np.nan
    for scores in (nan, Scores(right, nan)):
        with pytest.raises(ValueError, match=f"at image {place[0]}, text {place[1]}[.]"):
            class_based(scores, truth, classes)


@pytest.mark.parametrize(("classes", "message"), [
    ([0, 1], r"its class, for each of 3 images; got shape \(2,\)"),
    ([[0, 1, 1]], r"got shape \(1, 3\)"),
    ([0.0, 1.0, 1.0], r"got shape \(3,\) of float64"),
])
def test_bad_classes_are_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        class_based(np.eye(3), Truth(np.arange(3)), np.array(classes))


def test_scores_of_another_split_are_refused():
    with pytest.raises(ValueError, match=r"scores must be .* \(3, 3\); got \(2, 3\)"):
        class_based(np.zeros((2, 3)), Truth(np.arange(3)), np.arange(3))
