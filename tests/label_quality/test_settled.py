"""Differences of label sources with their error over images: by hand, and against slow loops."""

import numpy as np
import pytest

from itr_study.lab.label_quality.agreement import (
    ExtendedTruth,
    by_judge,
    by_rankings,
    by_spread,
    times_drawn,
)
from itr_study.lab.label_quality.captions import caption_spread
from itr_study.lab.label_quality.judges import Judge
from itr_study.lab.ledger.evidence import COLUMNS
from itr_study.metrics.retrieval_sets import Matches
from itr_study.metrics.truth import Positives


def judge(correlate) -> Judge:
    """Eight pairs of four images."""
    groups = np.repeat(np.arange(4), 2)
    return Judge("people", "mean", groups, np.arange(8), np.zeros(8), np.zeros(8, bool), groups,
                 None, correlate)


def test_two_sources_see_the_same_draws():
    """A correlation that is a mean: its standard error is known, that of a constant gap is 0."""
    mean = judge(lambda scores, pairs: float(scores[pairs].mean()) / 100)
    values = np.array([1.0, 3, 2, 2, 5, 7, 0, 4])  # of the images: 2, 2, 6, 2
    line = by_judge(mean, "tau", {"a": values, "b": values - 4}, "a", "b", 50)
    assert set(line) == set(COLUMNS) and line["difference"] == pytest.approx(4)
    assert line["error"] == pytest.approx(0, abs=1e-12) and line["images"] == 4
    apart = by_judge(mean, "tau", {"a": values, "b": np.zeros(8)}, "a", "b", 4000)
    assert apart["difference"] == pytest.approx(3)
    assert apart["error"] == pytest.approx(np.std([2, 2, 6, 2]) / 2, rel=0.05)
    assert (apart["arm_a"], apart["arm_b"]) == ("labels(a)", "labels(b)")


def test_rankings_are_compared_query_by_query():
    """Two images of two texts each; the first source finds all, the second turns the list round."""
    owner = np.array([0, 0, 1, 1])
    match = (owner == np.arange(2)[:, None]).astype(float)
    lists = Matches(Positives(np.array([0, 2, 4]), np.arange(4)),
                    Positives(np.arange(5), owner))
    truth = ExtendedTruth(lists, (np.array([2, 2]), np.ones(4, int)))
    grades = {"good": lambda images, texts: match[np.ix_(images, texts)],
              "half": lambda images, texts: np.where(images[:, None] == 0, 1, -1)
              * match[np.ix_(images, texts)]}
    lines = {line["metric"]: line for line in by_rankings(grades, truth, owner, "small", 3000)}
    assert lines["eccv_i2t_rp"]["difference"] == pytest.approx((0 + 100) / 2)  # image 1 finds none
    assert lines["eccv_t2i_rp"]["difference"] == pytest.approx((0 + 0 + 100 + 100) / 4)
    # two images, gaps 0 and 100, drawn twice: mean 0, 50 or 100 with 1/4, 1/2, 1/4
    assert lines["eccv_i2t_rp"]["error"] == pytest.approx(100 / 8**0.5, rel=0.05)
    assert lines["eccv_t2i_rp-eccv_i2t_rp"]["difference"] == pytest.approx(0)
    assert lines["eccv_t2i_rp-eccv_i2t_rp"]["error"] == pytest.approx(0)  # the same images drawn
    assert len(lines) == 6 and all(line["images"] == 2 for line in lines.values())


def test_the_spread_of_captions_against_alpha_equals_loops():
    random = np.random.default_rng(0)
    image = np.repeat(np.arange(30), 10)
    alike = 0.6 + 0.05 * random.normal(size=30)[image] + 0.1 * random.normal(size=300)
    lines = {line["arm_a"]: line for line in by_spread(alike, image, "coco5k", 400, seed=3)}
    spread = caption_spread(alike, image)
    times, looped = times_drawn(30, 400, 3), {"pooled": [], "per_image": []}
    for counts in times.astype(int):
        rows = np.concatenate([np.flatnonzero(image == i) for i in np.repeat(range(30), counts)])
        labels = np.repeat(np.arange(30), 10)  # an image drawn twice counts as two
        again = caption_spread(alike[rows], labels)
        for name, values in looped.items():
            values.append(100 * again[name])
    for name, reading in (("pooled", "pooled"), ("per_image", "per image")):
        line = lines[f"labels(captions, {reading})"]
        assert line["difference"] == pytest.approx(100 * (spread[name] - 0.2))
        assert line["error"] == pytest.approx(np.std(looped[name], ddof=1), rel=1e-6)
        assert line["metric"] == "spread_coco5k" and line["images"] == 30


def test_as_many_images_are_drawn_as_there_are():
    times = times_drawn(7, 100, 0)
    assert (times.sum(axis=1) == 7).all() and times.std() > 0
