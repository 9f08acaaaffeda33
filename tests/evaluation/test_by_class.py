"""CUB by class: columns of one data set alone, and its whole way on files that the test writes."""

import math

import numpy as np
import pytest
import torch

import itr_study as itr
from itr_study.data import DATASETS
from itr_study.data.base import SPLITS, Regions
from itr_study.evaluation import measures
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.measures import Scored, by_class, class_columns
from itr_study.rerank.fast import CUB_SCALES
from tests.data import tiny
from tests.oracles import class_based, fast
from tests.small import SmallData, small_model

PRINTED = ("i2t_class_r1", "i2t_class_rp", "t2i_class_r1", "t2i_class_rp")
# Cosines of the four test images with the eight texts, in tenths: two Jays, two Auks. Text 0 of
# Jay 0 is a hub that all birds like; Jay 1 likes one text of Auk 0 best of the others.
TENTHS = np.array([[8, 5, 3, 2, 4, 1, 0, 0],
                   [7, 2, 4, 3, 6, 1, 0, 0],
                   [8, 1, 0, 0, 7, 5, 3, 2],
                   [9, 1, 2, 0, 5, 4, 8, 6]])


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """Tiny CUB as read, and encoded with region features of our own: a row of the scores each."""
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "home"))
    tiny.cub(tmp_path)
    dataset = itr.load_dataset("cub", tmp_path, as_published=False)
    dataset.features["own"] = lambda split: Regions(
        (TENTHS[:, None] / 10).astype(np.float32), np.ones((4, 1), bool))
    return itr.encode_dataset(dataset, images="own", tokens="words")


class ByHand(torch.nn.Module):
    """Scores the text in place t by number t of the image's region features."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def encode_images(self, batch):
        return batch.regions[:, 0]

    def encode_texts(self, batch):
        return torch.eye(8)[batch.text_ids]

    def score(self, images, texts):
        return images @ texts.T


def test_cub_alone_has_columns_by_class():
    assert class_columns("cub", "dev") == PRINTED
    assert class_columns("cub", "test") == (*PRINTED, *(f"fast_cub_{name}" for name in PRINTED))
    having = {(name, split) for name in DATASETS for split in SPLITS
              if any("class" in column for column in measures.measure_columns(name, split))}
    assert having == {("cub", "dev"), ("cub", "test")}
    assert set(class_columns("cub", "test")) <= set(
        measures.measure_columns("cub", "test", needs=()))
    assert measures.measure_of("cub", "test_fast_cub_i2t_class_rp") == "by class"


def test_the_whole_way_from_files_to_retrieval_by_class(birds):
    """Image 0 (R = 4): texts 0, 1, 4, 2 -> 3 / 4. 1: 0, 4, 2, 3 -> 3 / 4. 2: 0 first, of another
    class; 0, 4, 5, 6 -> 3 / 4. 3: 0 first; 0, 6, 7, 4 -> 3 / 4. Text 0 (R = 2) is found by image
    3 of another class; with images 0 and 2 tied, 2 comes first: 0 of 2. 1: images 0, 1. 2: 1, 0.
    3: 1, 0. 4: image 2 first, then 1: 1 / 2. 5: 2, 3. 6: 3, 2. 7: 3, 2."""
    table = evaluate(ByHand(), birds.splits["test"], measures_of="cub").table
    assert {name: table[name] for name in PRINTED} == pytest.approx({
        "i2t_class_r1": 100 * 2 / 4, "i2t_class_rp": 100 * 3 / 4,
        "t2i_class_r1": 100 * 7 / 8, "t2i_class_rp": 100 * (0 + 1 + 1 + 1 + 1 / 2 + 1 + 1 + 1) / 8})
    assert table["i2t_r1"] == 100 * 1 / 4  # by image id 1, 2 and 3 find another's text first


def test_dev_is_measured_and_not_re_ranked(birds):
    dev = evaluate(ByHand(), birds.splits["dev"], measures_of="cub").table
    assert set(PRINTED) <= set(dev) and not any(name.startswith("fast") for name in dev)
    assert birds.splits["dev"].image_classes.tolist() == [2, 2, 3, 3]


def test_fast_re_ranking_takes_the_scales_of_the_paper(birds):
    """One new score by hand, image 0 and text 0: 8 x 0.8 - log of the sum of exp(9 A) of its
    column; all of them by loops, and then the metrics by loops."""
    assert CUB_SCALES == {"gamma1": 9, "gamma2": 8, "lambda1": 8, "lambda2": 17}
    split, scores = birds.splits["test"], TENTHS / 10
    new = itr.RERANKERS["fast"](scores, **CUB_SCALES)
    assert new.i2t[0, 0] == pytest.approx(
        8 * 0.8 - math.log(sum(math.exp(9 * a) for a in (0.8, 0.7, 0.8, 0.9))))
    assert new.t2i[0, 0] == pytest.approx(
        17 * 0.8 - math.log(sum(math.exp(8 * a / 10) for a in TENTHS[0])))
    owner, classes = split.image_of_text.tolist(), split.image_classes.tolist()
    i2t, t2i = (class_based.oracle(matrix, owner, classes)
                for matrix in fast.oracle(scores.tolist(), **CUB_SCALES))
    expected = {f"fast_cub_{name}": 100 * (i2t if "i2t" in name else t2i)[name] for name in PRINTED}
    found = by_class(Scored(scores, split))
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["fast_cub_i2t_class_r1"] == 100 > found["i2t_class_r1"]  # the hub is held back


def test_a_split_without_classes_and_train_are_not_measured(birds):
    other = SmallData().splits["test"]
    assert by_class(Scored(torch.zeros(18, 54), other)) == {}
    found = evaluate(small_model(), other, measures_of="cub").table
    assert not any("class" in name for name in found)
    assert measures.measure(Scored(TENTHS, birds.splits["train"]), "cub") == {}


def test_in_training_a_match_is_that_of_the_image_and_not_of_the_species(birds):
    batch = birds.splits["train"].pair_batch(np.array([0, 2, 4]))  # two Crows and a Wren
    assert batch.match.tolist() == np.eye(3, dtype=bool).tolist()
    assert birds.splits["train"].image_classes[[0, 1, 2]].tolist() == [0, 0, 1]
