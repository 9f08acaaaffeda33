"""Who judges label sources: pairs, ratings and correlations are those of the files."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from itr_study.data.base import DataError
from itr_study.lab.label_quality.judges import exact_judges, people, raters, read_coco
from itr_study.metrics.eccv import Judged, TruthSets
from itr_study.relevance import RELEVANCE
from tests.label_quality.judged_sets import EXACT, OWNER, TEXTS, judged_split
from tests.metrics.coco_sets import turned

NUMBERS, SENTENCES = [30, 10, 20], [7, 3, 9, 1, 8, 5]  # ids of three images, of six captions
CXC = {"sits": "caption,image,agg_score,sampling_method\n"
               "COCO_val2014:sentid:7,COCO_val2014_000000000030.jpg,5,c2i_original\n"
               "COCO_val2014:sentid:8,COCO_val2014_000000000030.jpg,2.5,c2i_intrasim\n"
               "COCO_val2014:sentid:1,COCO_val2014_000000000020.jpg,1,c2i_intrasim\n",
       "sts": "caption1,caption2,agg_score,sampling_method\n"
              "COCO_val2014:sentid:7,COCO_val2014:sentid:3,4,c2c_cocaption\n"
              "COCO_val2014:sentid:9,COCO_val2014:sentid:8,0.5,c2c_isim\n",
       "sis": "image1,image2,agg_score,sampling_method\n"
              "COCO_val2014_000000000030.jpg,COCO_val2014_000000000020.jpg,3,i2i_csim\n"
              "COCO_val2014_000000000010.jpg,COCO_val2014_000000000020.jpg,1,i2i_csim\n"}


@pytest.fixture
def coco(tmp_path):
    """coco5k/ and cxc/ with three images, and the ground truth of their captions."""
    for folder in ("coco5k", "cxc"):
        (tmp_path / folder).mkdir()
    for split in ("testall", "dev"):
        (tmp_path / "coco5k" / f"{split}_caps.txt").write_text("\n".join(TEXTS) + "\n")
        (tmp_path / "coco5k" / f"{split}_ids.txt").write_text(
            "\n".join(str(NUMBERS[i]) for i in OWNER) + "\n")
    for kind, rows in CXC.items():
        (tmp_path / "cxc" / f"{kind}_test.csv").write_text(rows)
    own = {n: [SENTENCES[t] for t in range(6) if OWNER[t] == i] for i, n in enumerate(NUMBERS)}
    judged = Judged(own, turned(own))
    return tmp_path, TruthSets(judged, judged, judged, np.array(SENTENCES))


def test_experts_are_compared_as_the_paper_compares_them():
    (judge,) = people(judged_split())
    assert (judge.name, judge.statistic) == ("Flickr8k, experts", "Kendall τ-c")
    assert judge.ratings.tolist() == pytest.approx([4, 8 / 3, 1, 4 / 3, 8 / 3])
    scores = judge.score(RELEVANCE["sentence"]("mine"))
    # images 0, 0, 1, 2, 2 with texts 0, 4, 5, 3, 1; the first is the image's own
    assert scores.tolist() == pytest.approx([1, (1 + 0.96) / 2, (1 + 0.96) / 2,
                                             (1 + (-0.36 + 0.64)) / 2 + 0.16, (1 + 0.96) / 2])
    pairs = np.array([1, 2, 3])
    ratings = [2, 3, 3, 1, 1, 1, 2, 1]
    ours = np.repeat(scores[pairs], [3, 2, 3])
    assert judge.correlate(scores, pairs) == pytest.approx(
        kendalltau(ours, ratings, variant="c").statistic)


def test_exact_relevance_agrees_with_itself_and_matches_are_its_own():
    split = judged_split(exact=True)
    order, value = exact_judges(split, pairs=40, seed=3)
    assert order.own.sum() == 6 and (order.own == (OWNER[order.second] == order.first)).all()
    np.testing.assert_array_equal(order.ratings, EXACT[order.first, order.second])
    everything = np.arange(len(order))
    for judge in (order, value):
        scores = judge.score(RELEVANCE["exact"]())
        assert judge.correlate(scores, everything) == pytest.approx(1, abs=1e-3)
    scores = value.score(RELEVANCE["sentence"]("mine"))
    assert value.correlate(scores, everything) == pytest.approx(
        pearsonr(scores, value.ratings).statistic)
    assert order.correlate(scores, everything) == pytest.approx(
        kendalltau(scores, order.ratings).statistic)


def test_coco_captions_come_with_their_ids_and_labels(coco):
    root, truth = coco
    absent = {}
    found = read_coco(root, absent, ("cider", "texts"), truth)
    assert found.image_ids.tolist() == NUMBERS and found.text_ids.tolist() == SENTENCES
    assert list(found.split.label_vectors) == ["cider", "texts"] and not absent
    assert found.split.image_of_text.tolist() == OWNER.tolist()
    with pytest.raises(DataError, match="not those of eccv-caption"):
        read_coco(root, absent, (), replace(truth, order=truth.order[::-1]))
    (root / "coco5k" / "dev_caps.txt").unlink()
    assert not read_coco(root, absent, ("cider",), truth).split.label_vectors
    assert "dev_caps.txt" in absent["cider of coco5k"]
    with pytest.raises(DataError, match="holds no coco5k"):
        read_coco(root / "cxc", absent, (), truth)


def test_raters_of_cxc_score_images_with_texts_texts_and_images(coco):
    root, truth = coco
    found = read_coco(root, {}, ("cider",), truth)
    source = RELEVANCE["cider"]("mean")
    sits = raters(found, root)
    assert sits.first.tolist() == [0, 0, 2] and sits.second.tolist() == [0, 4, 3]
    assert sits.own.tolist() == [True, False, False] and sits.groups.tolist() == [0, 0, 2]
    block = source.block(found.split, slice(None))
    scores = sits.score(source)
    np.testing.assert_allclose(scores, block[sits.first, sits.second], atol=1e-6)
    assert sits.correlate(scores, np.arange(3)) == pytest.approx(
        pearsonr(scores, [5, 2.5, 1]).statistic)
    rank = raters(found, root, "sits", "spearman")
    assert rank.statistic == "Spearman" and rank.correlate(scores, np.arange(3)) == pytest.approx(
        spearmanr(scores, [5, 2.5, 1]).statistic)
    sts, sis = raters(found, root, "sts"), raters(found, root, "sis")
    assert sts.second.tolist() == [1, 4] and sts.own.tolist() == [True, False]
    np.testing.assert_allclose(sis.score(source), [block[0, 4:].mean(), block[1, 4:].mean()],
                               atol=1e-6)


def test_ratings_of_other_captions_are_refused(coco):
    root, truth = coco
    found = read_coco(root, {}, (), truth)
    path = root / "cxc" / "sits_test.csv"
    path.write_text(path.read_text().replace("sentid:8", "sentid:77"))
    with pytest.raises(DataError, match="1 ids, 77 the first, are none of the test captions"):
        raters(found, root)


@pytest.mark.skipif(find_spec("eccv_caption") is None, reason="needs the package eccv-caption")
def test_real_coco_captions_are_those_of_the_ground_truths(real_data):
    found = read_coco(real_data, {}, ())
    assert (len(found.image_ids), len(found.texts)) == (5000, 25000)
    binary = RELEVANCE["binary"]()
    sits = raters(found, real_data)
    assert len(sits) == 44833 and sits.own.sum() == 25000
    np.testing.assert_array_equal(sits.score(binary), sits.own)
    assert len(raters(found, real_data, "sts")) == 44045
    assert len(raters(found, real_data, "sis")) == 46719
