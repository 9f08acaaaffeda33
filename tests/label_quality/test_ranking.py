"""Rankings by a label source alone."""

from importlib.util import find_spec

import numpy as np
import pytest

from itr_study.lab.label_quality.agreement import (
    eccv_truth,
    exact_truth,
    graded,
    label_sources,
    one_caption,
    random_ties,
    ranking_metrics,
    ranking_table,
)
from itr_study.lab.label_quality.judges import CocoCaptions, read_coco
from itr_study.lab.ledger.reported import reported
from itr_study.metrics.eccv import eccv_table
from itr_study.relevance import RELEVANCE
from tests.label_quality.judged_sets import EXACT, VECTORS, judged_split
from tests.metrics.coco_sets import small_sets

EVERY = np.arange(3), np.arange(6)


def test_ranking_by_scores_equals_the_table_of_eccv():
    image_ids, text_ids, sets = small_sets(3)
    split = judged_split()
    coco = CocoCaptions(split, (), np.array(image_ids), np.array(text_ids), sets)
    scores = np.round(np.random.default_rng(0).standard_normal((len(image_ids), len(text_ids))), 1)
    found = ranking_metrics(lambda images, texts: scores[np.ix_(images, texts)], eccv_truth(coco))
    table = eccv_table(scores, image_ids, text_ids, sets)
    for way in ("i2t", "t2i"):
        for name in ("map_at_r", "r_precision", "r1"):
            assert found[f"{way}_{name}"] == pytest.approx(100 * table[f"{way}_eccv_{name}"])


def test_texts_that_fit_fully_are_matches_too():
    truth = exact_truth(judged_split(exact=True))
    assert [truth.matches.i2t[i].tolist() for i in range(3)] == [[0, 1], [2, 3], [1, 4, 5]]
    assert truth.matches.t2i[1].tolist() == [0, 2] and truth.sizes[1].tolist() == [1, 2, 1, 1, 1, 1]
    perfect = ranking_metrics(lambda images, texts: EXACT[np.ix_(images, texts)], truth)
    assert set(perfect.values()) == {100.0}
    binary = ranking_metrics(graded(RELEVANCE["binary"](), judged_split()), truth)
    # image 2 finds 2 of its 3; text 1 finds the first of its 2 images; ties count against
    assert binary["i2t_r_precision"] == pytest.approx(100 * (1 + 1 + 2 / 3) / 3)
    assert binary["t2i_r_precision"] == pytest.approx(100 * 5.5 / 6)


def test_forms_of_relevance_by_hand(monkeypatch):
    split, source = judged_split(), RELEVANCE["sentence"]("mine", scale="cosine")
    cosines = VECTORS @ VECTORS.T
    np.testing.assert_allclose(graded(source, split)(*EVERY), source.block(split, slice(None)),
                               rtol=1e-6, atol=1e-7)
    for number, first in ((0, [0, 2, 4]), (1, [1, 3, 5]), (4, [1, 3, 5])):
        np.testing.assert_allclose(one_caption(source, split, number)(*EVERY), cosines[first],
                                   atol=1e-6)
    some = one_caption(source, split, 1)(np.array([2, 0]), np.array([3]))
    np.testing.assert_allclose(some, cosines[[5, 1]][:, [3]], atol=1e-6)
    binary = graded(RELEVANCE["binary"](), split)
    drawn = random_ties(binary, 0)(*EVERY)
    assert ((drawn >= 1) == binary(*EVERY)).all() and len(np.unique(drawn)) == 18


def test_a_table_has_a_row_for_each_form_and_names_what_is_missing():
    absent, split = {}, judged_split(exact=True)
    sources = label_sources(["binary", "cider/max", "meteor/max", "sentence/mean"])
    table = ranking_table(split, exact_truth(split), sources, absent, captions=2)
    assert table["method"].tolist() == ["binary", *["binary, random ties"] * 2, "cider, max",
                                        *["cider, one caption"] * 2]
    assert table["run"].tolist() == [0, 0, 1, 0, 0, 1]
    assert set(absent) == {"ranking by meteor, max", "ranking by sentence, mean"}


@pytest.mark.skipif(find_spec("eccv_caption") is None, reason="needs the package eccv-caption")
def test_the_pairwise_annotation_is_that_of_the_paper(real_data):
    """listwise, Table I; it does not say in which order it puts ties, we count them against."""
    coco = read_coco(real_data, {}, ())
    found = ranking_metrics(graded(RELEVANCE["binary"](), coco.split), eccv_truth(coco))
    printed = reported("listwise", "I").query("method == 'Pairwise Annotation'")
    for row in printed.to_dict("records"):
        name = {"mAP@R": "map_at_r", "R-P": "r_precision"}[row["metric"]]
        assert found[f"{row['direction']}_{name}"] == pytest.approx(row["value"], abs=0.15)
