"""Where does it look, without a browser: what is shown is what the model looks at."""

import copy
import json

import numpy as np
import pytest
import torch

from itr_study.evaluation import search
from itr_study.evaluation.looks import Looker
from itr_study.explorers.looking import LISTED, Looking
from itr_study.metrics import ranks
from tests.evaluation.looking import SCENES, searcher, searcher_of
from tests.explorers.searchers import two_searchers
from tests.plots.test_pictures import texts


def made(*names) -> Looking:
    return Looking({name: searcher(name) for name in names or ("saf", "vse_infinity", "dvse")})


@pytest.fixture
def pane() -> Looking:
    return made()


def test_what_is_shown_is_the_look_of_the_model(pane):
    seen = Looker(searcher("saf")).look(0, 0)
    shown = pane.stage()
    assert [row["name"] for row in shown["rows"]] == list(seen.rows)
    for row, weights in zip(shown["rows"], seen.weights, strict=True):
        order = np.argsort(-weights, kind="stable")[:LISTED]
        assert [one["share"] for one in row["largest"]] == pytest.approx(weights[order].tolist())
        assert row["largest"][0]["region"].startswith(f"region {seen.regions[order[0]] + 1}")
        assert row["heat"].startswith("data:image/jpeg")
    assert shown["row"] == 0
    assert len({row["heat"] for row in shown["rows"]}) > 1
    there = [int(r) + 1 for r, box in zip(seen.regions, seen.boxes, strict=True)
             if np.isfinite(box).all()]
    assert [box[0] for box in shown["boxes"]] == there
    assert json.loads(json.dumps(pane.view(), allow_nan=False)) == pane.view()


def test_a_word_is_pointed_at_and_told(pane):
    pane.handle("point", {"index": 2})
    seen = pane.selected
    assert pane.row == 2 and pane.stage()["row"] == 2
    top = int(seen.weights[2].argmax())
    told = pane.numbers()[f"largest weight of “{seen.rows[2]}”"]
    assert f"region {seen.regions[top] + 1}" in told
    assert pane.numbers()["score"] == f"{seen.score:.3f}"
    pane.handle("point", {"index": 99})
    assert "index must be an integer >= 0 and <=" in pane.problem and pane.row == 2


def test_texts_are_chosen_in_order_by_number_and_by_failure(pane):
    pane.handle("next")
    assert pane.text == 1 and pane.image == SCENES.splits["test"].image_of_text[1]
    pane.handle("text", "8")
    assert pane.text == 7 and pane.place == 7 and pane.row == 0
    pane.handle("sort", "failures")
    scores = searcher("saf").scores
    found = ranks(scores, SCENES.splits["test"].image_of_text).t2i
    assert found[pane.text] == found.max() and pane.place == 0
    pane.handle("previous")
    assert "there is no place 0" in pane.problem
    pane.handle("text", "100")
    assert "Text must be a whole number from 1 to 60" in pane.problem


def test_the_picture_is_its_own_or_that_found_first_or_any(pane):
    pane.handle("text", "12")
    pane.handle("which", "first")
    assert pane.image == int(searcher("saf").scores[:, 11].argmax())
    pane.handle("next")
    assert pane.which == "first" and pane.image == int(searcher("saf").scores[:, 12].argmax())
    pane.handle("picture", "5")
    assert (pane.image, pane.which) == (4, "other")
    assert pane.numbers()["pair"] == "Text 13, another picture 5"
    assert pane.selected.score == pytest.approx(
        float(searcher("saf").scores[4, 12]), abs=1e-6)
    pane.handle("next")  # another text begins with its own picture
    assert pane.which == "own" and pane.image == SCENES.splits["test"].image_of_text[13]
    assert "its own picture" in pane.numbers()["pair"]


def test_another_model_shows_what_it_has_of_the_same_text(pane):
    pane.handle("text", "4")
    pane.handle("model", "dvse")
    assert pane.text == 3 and pane.kind == "heads"
    assert [row["name"] for row in pane.stage()["rows"]] == ["head 1", "head 2", "head 3"]
    pane.handle("kind", "gradient")
    pane.handle("model", "saf")
    assert pane.kind == "gradient" and pane.stage()["rows"][0]["name"] == "the whole text"
    pane.handle("kind", "ranks")
    assert "must be one of words, gradient" in pane.problem and pane.kind == "gradient"
    pane.handle("model", "vse_infinity")
    pane.handle("kind", "ranks")
    learnt = pane.selected.by_rank
    assert pane.stage()["ranks"][0] == f"{learnt[0]:.2f}"
    assert pane.numbers()["weight of the largest value"] == f"{learnt[0]:.2f}"


def test_all_pairs_are_scored_for_the_order_of_failures_alone():
    one = searcher_of(searcher("saf").model)
    pane = Looking({"saf": one})
    for done in (("which", "first"), ("next",), ("point", {"index": 1})):
        pane.handle(*done)
        assert pane.view() and pane.problem == "" and "scores" not in vars(one)
    pane.handle("sort", "failures")
    assert "scores" in vars(one)


@pytest.mark.parametrize("name", ["saf", "two_branch"])
def test_a_model_that_diverged_is_refused_by_name(name):
    lost = copy.deepcopy(searcher(name).model)
    for parameter in lost.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    with pytest.raises(ValueError, match="the scores of 'lost' hold NaN or infinity"):
        Looking({"saf": searcher("saf"), "lost": searcher_of(lost)})


@pytest.mark.parametrize("name, value", [
    ("next", None), ("model", "dvse"), ("sort", "failures"), ("text", "7"), ("go", 5)])
def test_a_picture_that_cannot_be_found_leaves_all_as_it_is(monkeypatch, name, value):
    """Each of these shows another picture that is found first."""
    fresh = Looking({name: searcher_of(searcher(name).model) for name in ("saf", "dvse")})
    fresh.handle("sort", "failures")
    fresh.handle("which", "first")
    fresh.handle("sort", "plain")
    fresh.handle("point", {"index": 1})
    before = fresh.view()

    def no_memory(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(search, "score", no_memory)
        fresh.handle(name, value)
        assert "MemoryError" in fresh.problem
    assert fresh.view() | {"problem": ""} == before


def test_a_single_model_needs_no_choice_and_the_next_cell_reads_numbers():
    one = made("saf")
    assert "model" not in {control["name"] for control in one.controls()}
    table = one.table
    assert len(table) == one.selected.weights.size
    assert table["weight"].tolist() == pytest.approx(one.selected.weights.ravel().tolist())
    assert table["region"].min() == 1


def test_the_still_picture_says_the_same(pane):
    picture = pane.picture()
    assert picture.get_suptitle() == "Heat maps of words"
    assert any(f"score of the pair {pane.selected.score:.2f}" in text for text in texts(picture))


def test_several_models_over_one_split_and_no_other():
    with pytest.raises(ValueError, match="over the same images and texts"):
        Looking({"saf": searcher("saf"), "other": two_searchers()["one"]})
    with pytest.raises(ValueError, match="Looking takes 1 or more models by name, .* got none"):
        Looking({})
