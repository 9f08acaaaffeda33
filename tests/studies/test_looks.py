"""Arms of notebook 11, and tables of whether models look at what words name."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from itr_study.data.box_table import BoxTable, Detections, class_names
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.evaluation.looks import Looker, scene_pointing
from itr_study.evaluation.pointing import CONTROLS, MEASURES
from itr_study.evaluation.search import Searcher
from itr_study.features.dataset import encode_dataset
from itr_study.lab.studies import nb09_stronger_models, nb11_attention
from itr_study.lab.studies.arms import base_config
from itr_study.lab.studies.nb11_attention import (
    OF_CLASSES,
    looking_arms,
    named_places,
    other_arms,
    pointing_rows,
)
from itr_study.lab.studies.plans import choose
from itr_study.models import MODELS
from tests.evaluation.looking import SCENES, searcher
from tests.features.fakes import Tiny


def run_of(label, seed=0):
    return SimpleNamespace(label=label, config=SimpleNamespace(seed=seed))


def test_arms_are_saf_by_loss_and_other_bases():
    parameters = choose("11_attention_maps", "quick", compared=["sum", "top5"], seeds=2)
    runs = looking_arms("scenes", parameters)
    assert [(run.label, run.config.seed) for run in runs] == [
        ("saf/sum", 0), ("saf/sum", 1), ("saf/top5", 0), ("saf/top5", 1)]
    assert {run.config.model for run in runs} == {"saf"}
    assert [term.loss for run in runs[::2] for term in run.config.objective] == [
        "triplet_sum", "topk"]
    assert [run.config.model for run in other_arms("scenes", parameters)] == parameters.others


def test_what_notebook_09_trains_is_not_trained_twice():
    """Runs of SAF, and the first of other models that are its."""
    full = choose("11_attention_maps", "full")
    labels = choose("09_stronger_models", "quick").stronger  # all: `full` names what is trained yet
    there = {(run.label, run.config.seed): run.config for run in nb09_stronger_models.stronger_arms(
        "flickr8k", choose("09_stronger_models", "full", stronger=labels))}
    shared = looking_arms("flickr8k", full)
    assert len(shared) == 15
    assert all(there[run.label, run.config.seed] == run.config for run in shared)
    first = {run.label: run.config for run in other_arms("flickr8k", full)}
    assert first["vse_infinity"] == there["vse_infinity/hardest", 0]
    more = choose("11_attention_maps", "full", others=["sgr", "dan", "dvse"])
    assert [run.config for run in other_arms("flickr8k", more)] == [
        there["sgr/hardest", 0], there["dan/sum", 0], base_config("flickr8k", "dvse", more)]


def test_a_line_is_the_mean_over_names_in_percent():
    pairs = [(run_of("saf/sum", 3), searcher("saf")), (run_of("dvse"), searcher("dvse"))]
    rows = pointing_rows(pairs)
    assert rows[["arm", "seed", "kind"]].values.tolist() == [
        ["saf/sum", 3, "words"], ["saf/sum", 3, "gradient"], ["dvse", 0, "heads"],
        ["dvse", 0, "gradient"]]
    found = scene_pointing(SCENES, SCENES.splits["test"], Looker(searcher("saf")).maps("words"))
    for name in (*CONTROLS, *MEASURES):
        assert rows[name][0] == pytest.approx(100 * found[name].mean())
    often = found["class"].value_counts()
    assert (rows["names"] == len(found)).all() and (rows["commonest"] == often.index[0]).all()
    assert rows["commonest_share"].tolist() == pytest.approx([100 * often.iloc[0] / len(found)] * 4)
    for name in OF_CLASSES:
        assert rows[f"{name}_of_classes"][0] == pytest.approx(
            100 * found.groupby("class")[name].mean().mean())
    assert rows[["uniform", "area", "centre_hit"]].nunique().tolist() == [1, 1, 1]
    of_word = rows["kind"] == "words"  # all else shows all words the same
    np.testing.assert_allclose(rows["rest"][~of_word], rows["mass"][~of_word])
    assert not np.isclose(rows["rest"][of_word], rows["mass"][of_word]).any()
    assert pointing_rows(pairs, first=True)["kind"].tolist() == ["words", "heads"]


def test_on_photographs_the_boxes_are_those_of_the_detector(monkeypatch, tmp_path):
    """Boats are a class of COCO and a shape of scenes: with their true boxes both say the same."""
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    split, boat = SCENES.splits["test"], class_names().index("boat")
    found = []
    for image in split.image_ids:
        boxes = np.array([box[1:] for box in SCENES.boxes(image) if box[0].endswith("boat")])
        found.append(Detections(np.full(len(boxes), boat), np.full(len(boxes), 0.9),
                                boxes.reshape(-1, 4)))
    table = BoxTable.join(split.image_ids, found, "by hand")
    monkeypatch.setattr(nb11_attention, "dataset_boxes", lambda *_: table)
    photos = replace(SCENES, boxes=None)
    encoded = encode_dataset(photos, "tiny:grid:one", tokens="words", sentences="glove-mean",
                             store=tmp_path)
    model = MODELS["vsepp"](encoded.inputs, size=4, word_size=5, pool="max").eval()
    one = Searcher(model, photos, encoded, "test")
    seen = Looker(one).maps("gradient")
    rows = named_places(one, seen)
    wanted = scene_pointing(SCENES, split, seen).query("`class` == 'boat'")
    assert len(rows) == len(wanted) > 0 and set(rows["class"]) == {"boat"}
    assert rows[list(MEASURES)].to_numpy() == pytest.approx(wanted[list(MEASURES)].to_numpy())
