"""The table, the folds and the bootstrap."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import (
    Ranks,
    Truth,
    bootstrap,
    five_fold,
    folds,
    ranks,
    recall,
    retrieval_table,
)
from tests.metrics.sets import random_set

# by this way, because the package shows the function of the same name
module = importlib.import_module("itr_study.metrics.recall")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def test_table_by_hand():
    table = retrieval_table(Ranks(i2t=np.array([1, 6, 11, 2]), t2i=np.array([1, 1, 5, 40, 10])))
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


def test_recall_is_the_table_as_fractions():
    scores, owner = random_set(1, images=40)
    table = retrieval_table(ranks(scores, owner))
    for key, value in recall(scores, Truth(owner)).items():
        assert 100 * value == pytest.approx(table[key])
    with pytest.raises(ValueError, match="k must be >= 1"):
        recall(scores, Truth(owner), ks=(0,))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_five_fold_equals_five_separate_tests(ordered, kind):
    scores, owner = random_set(2, images=40)
    if ordered:
        owner = np.sort(owner)
    tables = []
    for fold in range(5):
        images = np.arange(8 * fold, 8 * fold + 8)
        texts = np.flatnonzero(np.isin(owner, images))
        fold = ranks(scores[np.ix_(images, texts)], owner[texts] - images[0])
        tables.append(retrieval_table(fold))
    expected = {key: sum(table[key] for table in tables) / 5 for key in tables[0]}
    assert five_fold(kind(scores), owner) == pytest.approx(expected)
    assert len({table["rsum"] for table in tables}) > 1
    assert all(isinstance(texts, slice) == ordered for _, texts, _ in folds(owner, 40))


def test_folds_must_be_equal():
    with pytest.raises(ValueError, match="41 images cannot be cut into 5 folds"):
        five_fold(*random_set(3, images=41))


def resample_directly(found, owner, draws):
    """The statistics of one resample of images, by concatenating lists."""
    i2t = found.i2t[draws]
    t2i = np.concatenate([found.t2i[owner == image] for image in draws])
    return retrieval_table(Ranks(i2t, t2i))


def test_bootstrap_equals_resampling_directly():
    found, owner = ranks(*random_set(4, images=30)), random_set(4, images=30)[1]
    draws = np.random.default_rng(7).integers(0, 30, (100, 30))
    tables = [resample_directly(found, owner, d) for d in draws]
    for key, interval in bootstrap(found, owner, n=100, seed=7, level=0.9).items():
        low, high = np.quantile([table[key] for table in tables], [0.05, 0.95])
        assert interval.value == pytest.approx(retrieval_table(found)[key])
        assert (interval.low, interval.high) == pytest.approx((low, high)), key


def test_bootstrap_is_determined_by_its_seed():
    scores, owner = random_set(5, images=30)
    found = ranks(scores, owner)
    assert bootstrap(found, owner) == bootstrap(found, owner)
    assert bootstrap(found, owner, n=100) != bootstrap(found, owner, n=100, seed=1)
    narrow, wide = bootstrap(found, owner, level=0.5), bootstrap(found, owner, level=0.99)
    assert all(wide[k].low <= narrow[k].low <= narrow[k].high <= wide[k].high for k in wide)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng, inside = np.random.default_rng(0), 0
    owner = np.repeat(np.arange(200), 2)
    for trial in range(200):
        found = Ranks(np.where(rng.random(200) < 0.4, 1, 50), np.full(400, 50))
        low, high = bootstrap(found, owner, n=300, seed=trial)["i2t_r1"][1:]
        inside += low <= 40 <= high
    assert 0.89 <= inside / 200 <= 0.99


def test_texts_of_an_image_are_resampled_together():
    # texts of an image share its fate: as few independent units as images, not as texts
    hit = np.random.default_rng(0).random(100) < 0.5
    owner = np.repeat(np.arange(100), 5)
    found = Ranks(np.where(hit, 1, 50), np.where(hit, 1, 50)[owner])
    interval = bootstrap(found, owner)
    assert interval["t2i_r1"] == pytest.approx(interval["i2t_r1"])


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(n=0), "n must be >= 1"), (dict(level=1.0), "level"), (dict(level=0.0), "level")])
def test_bad_arguments_are_refused(arguments, message):
    scores, owner = random_set(6)
    with pytest.raises(ValueError, match=message):
        bootstrap(ranks(scores, owner), owner, **arguments)
