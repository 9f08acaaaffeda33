"""What runs are measured by beside recall: graded truth and people, against values by hand."""

import gc
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
import torch

from itr_study.data import DATASETS
from itr_study.data.base import SPLITS, Judgements
from itr_study.data.batches import EncodedSplit, JudgedPairs
from itr_study.evaluation import measures
from itr_study.evaluation.measures import MEASURES, Scored
from itr_study.metrics import Scores, Truth, eccv_table, five_fold, ndcg
from tests.metrics.coco_sets import small_sets

OWNER = np.array([0, 0, 1, 2])


def measure(scores, split, dataset):
    """Without the hubness of a test split, which every data set has."""
    table = measures.measure(Scored(scores, split), dataset)
    return {name: value for name, value in table.items() if not name.endswith("_hubness")}


def split(name="test", **more):
    return EncodedSplit(name, OWNER, np.zeros((3, 1, 1, 2), np.float32), **more)


def unit_vectors(seed=0):
    vectors = np.random.default_rng(seed).normal(size=(4, 384)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_columns_follow_the_data_set_and_the_split():
    assert measures.measure_columns("scenes", "dev", needs=()) == (
        "i2t_ndcg_exact", "t2i_ndcg_exact", "i2t_tau_exact", "t2i_tau_exact",
        "i2t_cs100_exact", "t2i_cs100_exact")
    test, dev = (measures.measure_columns("flickr8k", split, needs=())
                 for split in ("test", "dev"))
    assert test == (*dev, "human_expert_tau_c", "human_crowdflower_tau_b") and len(dev) == 12
    assert measures.measure_columns("flickr8k", "train") == ()
    assert measures.measure_columns("folder", "dev")[0] == "i2t_ndcg_cider"


@pytest.mark.parametrize("held", [12, 11])
def test_truth_is_that_of_the_label_source(held, monkeypatch):
    vectors = unit_vectors()
    monkeypatch.setattr(measures, "HELD", held)
    one = split(label_vectors={"minilm": vectors})
    truth = measures.truths(one)
    assert set(truth) == {"sentence"}
    views = [truth["sentence"].relevance(slice(0, 3)).base for _ in range(2)]
    assert (views[0] is views[1] is not None) == (held == 12)  # graded once, or when read
    cosines = vectors @ vectors.T
    expected = np.stack([np.maximum(cosines[0], cosines[1]), cosines[2], cosines[3]])
    expected = (1 + expected) / 2
    expected[OWNER, np.arange(4)] = 1
    np.testing.assert_allclose(truth["sentence"].relevance(slice(0, 3)), expected, atol=1e-6)
    here = ref(one)
    del one
    gc.collect()
    assert here() is None  # its truth does not keep it


def test_measures_in_percent_are_the_metrics_on_that_truth():
    graded = np.array([[1, 1, 0.3, 0.1], [0.2, 0.1, 1, 0.4], [0, 0.5, 0.2, 1]], np.float32)
    scores = torch.tensor([[0.9, 0.1, 0.4, 0.2], [0.3, 0.2, 0.8, 0.1], [0.5, 0.6, 0.1, 0.2]])
    table = measure(scores, split(relevance=graded), "scenes")
    fractions = ndcg(scores, Truth(OWNER, 3, graded.__getitem__))
    assert table["i2t_ndcg_exact"] == pytest.approx(100 * fractions["i2t_ndcg"])
    assert table["t2i_rel10_exact"] == pytest.approx(100 * graded.mean())  # of three images, all
    assert set(table) == {name for name in measures.measure_columns("scenes", "test")
                          if name.endswith("_exact")}


def test_a_split_without_labels_and_train_have_no_measures():
    assert measure(torch.zeros(3, 4), split(), "scenes") == {}
    train = split("train", relevance=np.eye(3)[:, OWNER])
    assert measures.measure(Scored(torch.zeros(3, 4), train), "scenes") == {}


def test_people_are_asked_about_the_pairs_they_judged():
    """Scores in the order of the ratings agree fully, but for the pair of the image's own text."""
    judged = Judgements("crowdflower", ("a", "b", "c", "c"), ("x",) * 4,
                        np.array([[0.1], [0.5], [0.9], [1.0]]), np.array([False] * 3 + [True]), "b")
    pairs = JudgedPairs(np.array([0, 1, 2, 2]), np.array([2, 3, 0, 3]), judged)
    scores = torch.tensor([[0, 0, 0.1, 0], [0, 0, 0, 0.2], [0.3, 0, 0, -1.0]])
    table = measure(scores, split(judgements={"crowdflower": pairs}), "flickr8k")
    assert table == {"human_crowdflower_tau_b": pytest.approx(100)}
    table = measure(-scores, split(judgements={"crowdflower": pairs}), "flickr8k")
    assert table == {"human_crowdflower_tau_b": pytest.approx(-100)}


def test_of_two_matrices_people_are_held_against_the_one_of_images():
    judged = Judgements("crowdflower", ("a", "b"), ("x",) * 2, np.array([[0.1], [0.9]]),
                        np.zeros(2, bool), "b")
    pairs = JudgedPairs(np.array([0, 1]), np.array([2, 3]), judged)
    rising, falling = torch.zeros(3, 4), torch.zeros(3, 4)
    rising[1, 3] = falling[0, 2] = 1
    for i2t, t2i, expected in ((rising, falling, 100), (falling, rising, -100)):
        table = measure(Scores(i2t, t2i), split(judgements={"c": pairs}), "flickr8k")
        assert table == {"human_crowdflower_tau_b": pytest.approx(expected)}


def test_only_the_test_of_coco_is_ranked_in_five_folds_too(monkeypatch):
    owner = np.repeat(np.arange(10), 2)
    scores = np.random.default_rng(0).normal(size=(10, 20)).astype(np.float32)
    test, dev = (EncodedSplit(name, owner, np.zeros((10, 1, 1, 2), np.float32))
                 for name in ("test", "dev"))
    assert measure(scores, test, "coco") == {}  # of 10 images, not of 5,000
    assert not [name for name in measures.measure_columns("coco", "test", needs=())
                if name.startswith("1k_")]  # so a row is whole without them
    monkeypatch.setattr(measures, "FOLDED", 10)
    fractions, table = five_fold(scores, owner), measure(scores, test, "coco")
    assert table == pytest.approx({f"1k_{name}": 100 * value for name, value in fractions.items()}
                                  | {"1k_rsum": 100 * sum(fractions.values())})
    graded = {"i2t_ndcg_sentence", "t2i_cs100_cider"}
    assert set(measures.measure_columns("coco", "test")) >= {*table, *graded}
    assert not set(measures.measure_columns("coco", "dev")) & set(table)
    assert measure(scores, dev, "coco") == measure(scores, test, "scenes") == {}


def test_the_whole_test_of_coco_is_judged_by_further_matches_too(monkeypatch):
    image_ids, text_ids, sets = small_sets()
    names = [str(i) for i in image_ids], [f"test#{t}" for t in range(45)]
    owner = np.repeat(np.arange(15), 3)
    whole, nameless = (EncodedSplit("test", owner, np.zeros((15, 1, 1, 2), np.float32), ids=ids)
                       for ids in (names, ((), ())))
    scores = np.random.default_rng(0).normal(size=(15, 45)).astype(np.float32)
    columns = {f"{way}_{name}" for way in ("i2t", "t2i") for name in (
        "map_eccv", "rp_eccv", "r1_eccv", "r1_cxc", "r5_cxc", "r10_cxc")}
    monkeypatch.setattr(measures, "read_eccv", lambda: sets)
    monkeypatch.setattr(measures, "package_data", lambda: Path())
    assert not columns & set(measure(scores, whole, "coco"))  # 15 images, not 5,000
    monkeypatch.setattr(measures, "FOLDED", 15)
    table, whole_table = measure(scores, whole, "coco"), eccv_table(
        scores, image_ids, text_ids, sets)
    assert table["t2i_map_eccv"] == pytest.approx(100 * whole_table["t2i_eccv_map_at_r"])
    assert table["i2t_rp_eccv"] == pytest.approx(100 * whole_table["i2t_eccv_r_precision"])
    assert table["i2t_r5_cxc"] == pytest.approx(100 * whole_table["i2t_cxc_r5"])
    assert columns <= set(table) and columns <= set(measures.measure_columns("coco", "test"))
    assert not columns & set(measures.measure_columns("coco", "test", needs=()))
    assert not columns & set(measure(scores, nameless, "coco"))
    more = EncodedSplit("test", np.append(owner, 3), np.zeros((15, 1, 1, 2), np.float32), ids=(
        names[0], [*map(str, text_ids), "99999999"]))  # a sixth caption, as in Karpathy's JSON
    wider = np.c_[scores, np.full(15, 9.0, np.float32)]
    assert {name: measure(wider, more, "coco")[name] for name in columns} == {
        name: table[name] for name in columns}
    assert "further matches" in measures.takeable()
    monkeypatch.setattr(measures, "package_data", lambda: None)
    assert not columns & set(measure(scores, whole, "coco"))
    assert {*MEASURES} - {*measures.takeable()} == {"further matches"}


def test_five_folds_are_the_protocol_of_coco_alone():
    """Flickr30k's test has 1,000 images, as one fold of COCO's."""
    in_folds = {(dataset, split) for dataset in DATASETS for split in SPLITS
                if any(name.startswith("1k_") for name in measures.measure_columns(dataset, split))}
    assert in_folds == {("coco", "test")}


def test_columns_of_heads_are_those_of_models_that_have_them():
    names = ("entropy", "entropy_noise")
    for model in ("dvse", "pvse"):
        both = measures.measure_columns("flickr8k", "test", model=model)
        assert set(both) - set(measures.measure_columns("flickr8k", "test")) == set(names)
        assert measures.measure_columns("flickr8k", "dev", model=model) == \
            measures.measure_columns("flickr8k", "dev")
    assert not set(names) & set(measures.measure_columns("flickr8k", "test", model="vsepp"))


def test_entropy_is_the_mean_over_images_and_heads():
    """Head 1 of every image is as near to all four texts: the outcomes of image 0 are 1/4, 1/4 and
    the other two together, 1/2; those of the others 1/4 and 3/4. Head 2 of image 2 is all on its
    own text, that of the others on one that is not theirs: no entropy, noise 0, 1 and 1."""
    cosines = np.zeros((3, 2, 4))
    cosines[0, 1, 3] = cosines[1, 1, 0] = cosines[2, 1, 3] = 7  # of 0.07: e^100
    def heads():
        yield 0, torch.from_numpy(cosines[:2])
        yield 2, torch.from_numpy(cosines[2:])

    found = measures.measure(Scored(torch.zeros(3, 4), split(), heads=heads), "flickr8k")
    first = -(0.5 * np.log(0.25) + 0.5 * np.log(0.5))
    other = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert found["entropy"] == pytest.approx((first + 2 * other) / 6)
    assert found["entropy_noise"] == pytest.approx(100 * (0.5 + 0.75 + 0.75 + 1 + 1 + 0) / 6)
