"""Nouns of generated pictures, and whether maps fall on what they name: by hand."""

import doctest

import numpy as np
import pytest

from itr_study.data.scenes.words import SHAPES
from itr_study.data.vocabulary import tokenize
from itr_study.evaluation import looks as module
from itr_study.evaluation.looks import (
    Look,
    named_shapes,
    scene_pointing,
    scene_targets,
    word_maps,
)
from tests.evaluation.looking import SCENES

SPLIT = SCENES.splits["test"]
OWNERS = SPLIT.image_of_text.tolist()


def look(text: int, weights: np.ndarray, kind: str = "words") -> Look:
    """Of a picture whose regions are its things, and the whole."""
    boxes = np.array([box[1:] for box in SCENES.boxes(SPLIT.image_ids[OWNERS[text]])]
                     + [(0, 0, 1, 1)])
    rows = tuple(tokenize(SPLIT.texts[text])) if kind == "words" else ("the picture",)
    return Look(kind, rows, weights, boxes, np.arange(len(boxes)), 0.0, "")


def looks_at(where: str) -> list[Look]:
    """Every noun looks at what it names ("right"), at the whole picture, or all at the first."""
    found = []
    for text, caption in enumerate(SPLIT.texts):
        names = [box[0].split()[-1] for box in SCENES.boxes(SPLIT.image_ids[OWNERS[text]])]
        weights = np.zeros((len(tokenize(caption)), len(names) + 1))
        weights[:, {"whole": -1}.get(where, 0)] = 1
        for named in named_shapes(caption) if where == "right" else ():
            if SHAPES[named.number] in names:
                weights[named.start] = 0
                weights[named.start, names.index(SHAPES[named.number])] = 1
        found.append(look(text, weights))
    return found


def test_nouns_singular_and_plural_name_shapes_and_vague_ones_none():
    assert not doctest.testmod(module).failed
    assert [SHAPES[n.number] for n in named_shapes("Two cottages, a thing and a fish on a disc.")
            ] == ["house", "fish", "ball"]
    assert not named_shapes("Round things, pointed shapes and toys at night")


def test_targets_are_what_the_own_picture_shows():
    """Against asking every noun about every box."""
    found = {(t.text, t.named.start): t.boxes for t in scene_targets(SCENES, SPLIT)}
    count = 0
    for text, caption in enumerate(SPLIT.texts):
        boxes = SCENES.boxes(SPLIT.image_ids[OWNERS[text]])
        for named in named_shapes(caption):
            wanted = [box[1:] for box in boxes if box[0].endswith(SHAPES[named.number])]
            assert found[text, named.start].tolist() == [list(box) for box in wanted]
            count += 1
    assert count == len(found) > 50


def test_a_model_that_always_looks_right_has_all_and_one_that_looks_everywhere_the_area():
    right = scene_pointing(SCENES, SPLIT, looks_at("right"))
    alone = [len(t.boxes) == 1 for t in scene_targets(SCENES, SPLIT)]
    assert right["mass"].tolist() == pytest.approx([1] * len(right)) and (right["hit"] == 1).all()
    assert (right["iou"][alone] == 1).all()
    assert (right["uniform_hit"] < 1).all() and (right["area"] < 0.3).all()
    whole = scene_pointing(SCENES, SPLIT, looks_at("whole"))
    assert whole["mass"].tolist() == pytest.approx(whole["area"].tolist())
    assert whole["iou"].tolist() == pytest.approx(whole["area"].tolist(), abs=0.03)
    assert whole[["uniform", "centre"]].equals(right[["uniform", "centre"]])
    assert scene_pointing(SCENES, SPLIT, looks_at("first"))["hit"].mean() < 0.9


def test_a_map_of_the_text_stands_for_each_of_its_words():
    weights = np.array([[0.25, 0.75, 0], [0.75, 0.25, 0]])
    of_text = look(0, weights, "heads")
    (first, *_) = word_maps(SPLIT, [of_text] * len(SPLIT.texts))
    assert first.tolist() == [[0.5, 0.5, 0]] * len(tokenize(SPLIT.texts[0]))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="looks must be one for each text of split test: 60; got"):
        scene_pointing(SCENES, SPLIT, looks_at("first")[:3])
