"""Agreement of label sources with judges."""

import doctest

import numpy as np
import pytest

import itr_study.lab.label_quality.agreement as module
from itr_study.lab.label_quality.agreement import RATED, agreement, interval, label_sources
from itr_study.lab.label_quality.judges import exact_judges, people
from itr_study.relevance import RELEVANCE
from tests.label_quality.judged_sets import judged_split


def test_sources_by_name():
    found = label_sources(["binary", "sentence/max", "cider/mean"])
    assert list(found) == ["binary", "sentence, max", "cider, mean"]
    assert found["cider, mean"].pooling == "mean"
    with pytest.raises(ValueError, match="label source must be one of binary.*got 'bleu'"):
        label_sources(["bleu/max"])
    assert doctest.testmod(module).failed == 0


def test_agreement_names_what_is_missing_and_gives_both_ways_of_counting():
    absent, judges = {}, people(judged_split())
    sources = {"mine": RELEVANCE["sentence"]("mine"), "minilm": RELEVANCE["sentence"]()}
    table = agreement(judges, sources, absent, resamples=0)
    assert table["source"].tolist() == ["mine", "mine"] and table["rated"].tolist() == list(RATED)
    assert table["pairs"].tolist() == [4, 5] and table["low"].isna().all()
    scores = judges[0].score(sources["mine"])
    assert table["value"].tolist() == [100 * judges[0].correlate(scores, np.arange(1, 5)),
                                       100 * judges[0].correlate(scores, np.arange(5))]
    assert list(absent) == ["minilm, judged by Flickr8k, experts"]
    assert 'read split.label_vectors["minilm"]' in absent["minilm, judged by Flickr8k, experts"]


def test_an_interval_draws_whole_images_and_is_the_same_again():
    _, judge = exact_judges(judged_split(exact=True), pairs=60)
    scores = judge.score(RELEVANCE["sentence"]("mine"))
    pairs = np.arange(len(judge))
    low, high = interval(judge, scores, pairs, 300, seed=0)
    assert low < 100 * judge.correlate(scores, pairs) < high
    assert (low, high) == interval(judge, scores, pairs, 300, seed=0)
    one = np.flatnonzero(judge.groups == 1)  # a single image is always drawn
    value = 100 * judge.correlate(scores, one)
    assert interval(judge, scores, one, 5, seed=1) == pytest.approx((value, value))
