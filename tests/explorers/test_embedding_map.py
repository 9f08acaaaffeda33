"""The map without a browser: places, ranks and colours are what they are called; what is chosen is
what lies in the rectangle."""

import copy
import json
import time
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from itr_study.evaluation.search import Searcher
from itr_study.explorers.embedding_map import GALLERY, EmbeddingMap
from itr_study.explorers.map_data import (
    FINEST,
    compute_known,
    gain_shade,
    hub_shade,
    project,
    rank_shade,
)
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
from itr_study.metrics import hubness, ranks
from itr_study.metrics.first import skewness
from itr_study.plots.retrieval import STEPS, colours_of
from tests.small_runs import SMALL

# A cross: variance 4.5 across, 0.5 upwards, so that the axes are the given ones.
CROSS = np.array([[3.0, 0.0], [-3.0, 0.0]]), np.array([[0.0, 1.0], [0.0, -1.0]])
OWNER = np.array([0, 1])
# Twelve images and their texts, opposite each other at these distances; the first pair, farthest
# out, does not find itself: its score is the lowest of all, where all others are equal.
FAR = np.array([3.0, 1.0, 1.1, 1.2, 1.3, 1.4])
ANGLES = np.arange(12) * np.pi / 6
SCORES = np.where(np.arange(12) == 0, -1.0, 1.0) * np.eye(12)


def cross(**named) -> EmbeddingMap:
    return EmbeddingMap({1: (-CROSS[0], -CROSS[1]), 2: CROSS}, OWNER, ["up", "<b>down</b>"],
                        ["east", "west"], **named)


def cloud(images=40, each=3, size=8, seed=0):
    """Frame, owners: texts near their image."""
    made = np.random.default_rng(seed)
    base, owner = made.normal(size=(images, size)), np.repeat(np.arange(images), each)
    return (base, base[owner] + made.normal(size=(images * each, size))), owner


def test_places_are_principal_components_of_the_last_frame():
    made = project({1: (-CROSS[0], -CROSS[1]), 2: CROSS})
    np.testing.assert_allclose(made.places[2], np.concatenate(CROSS), atol=1e-9)
    np.testing.assert_allclose(made.places[1], -np.concatenate(CROSS), atol=1e-9)  # axes stay
    np.testing.assert_allclose(made.shares[2], [0.9, 0.1])
    turned = project({0: tuple(-part for part in CROSS)})  # the sign does not follow the data
    np.testing.assert_allclose(turned.places[0], -np.concatenate(CROSS), atol=1e-9)


def test_ranks_and_counts_are_those_of_the_metrics():
    frame, owner = cloud()
    frame = tuple(part.astype(np.float32) for part in frame)
    scores = frame[0] @ frame[1].T
    true, hubs = ranks(scores, owner), hubness(scores)
    for known in (compute_known(frame, owner), compute_known(frame, owner, scores)):
        assert known.ranks.tolist() == [*true.i2t, *true.t2i]
        assert skewness(known.counts[:40]) == pytest.approx(hubs["t2i_hubness"])
        assert skewness(known.counts[40:]) == pytest.approx(hubs["i2t_hubness"])


def test_scales_worked_by_hand():
    rank = rank_shade(np.array([1, 10, 100]), 100)
    np.testing.assert_allclose(rank.levels, [0, 0.5, 1])
    assert rank.hollow.tolist() == [False, False, True]
    assert [(round(at, 2), text) for at, text in rank.ticks] == [(0, "1"), (0.5, "10"), (1, "100")]
    hub = hub_shade(np.array([0, 9, 99]), 99)
    np.testing.assert_allclose(hub.levels, [0, 0.5, 1])
    assert hub.hollow.tolist() == [True, False, False]
    gain = gain_shade(np.array([-9, 0, 99]), 99)
    np.testing.assert_allclose(gain.levels, [0.25, 0.5, 1])
    assert gain.hollow.tolist() == [False, False, True] and (0.5, "0") in gain.ticks
    assert gain.ticks[0] == (0.0, "−99") and gain.ticks[-1] == (1.0, "+99")


def test_arrays_are_sent_once_where_they_are_asked_for():
    one = cross()
    assert one.stage()["sent"] == {} and one.stage()["places"] == "places/1"
    one.handle("send", ["places/1", "shade/rank/0"])
    sent = one.stage()["sent"]
    steps = np.frombuffer(b64decode(sent["places/1"]), "<u2").reshape(-1, 2)
    middle_x, middle_y, whole = one.stage()["whole"]
    places = np.array([middle_x, middle_y]) - whole + 2 * whole * steps / FINEST
    np.testing.assert_allclose(places, np.concatenate(CROSS), atol=2 * whole / FINEST)
    # all inner products are 0, so that ties put every match at rank 2, the last step
    assert list(b64decode(sent["shade/rank/0"])) == [STEPS - 1] * 4
    one.handle("colour", "rank")
    assert one.stage()["sent"] == {}


def test_what_lies_in_the_rectangle_is_selected():
    one = cross()
    one.handle("brush", {"x": [4, -0.5], "y": [-0.5, 1.5]})  # ends in any order
    assert one.selected.values.tolist() == [["image", 0, "east", 2, 2], ["text", 0, "up", 2, 2]]
    assert [entry["item"] for entry in one.stage()["gallery"]] == ["east", "up"]
    assert one.numbers()["images, texts in the rectangle"] == "1, 1"
    assert one.numbers()["median rank of the match"] == "rectangle 2, all 2"
    one.handle("frame", 1)  # points move, the rectangle stays
    assert one.selected["item"].tolist() == ["west", "<b>down</b>"]
    assert one.numbers()["frame"] == "1 of 2" and one.numbers()["images, texts"] == "2, 2"
    one.handle("brush", {"x": [2, 2.1], "y": [2, 2.1]})
    assert not len(one.selected) and one.stage()["gallery"] == [] and one.problem == ""


def test_the_gallery_has_images_and_texts_far_from_each_other():
    (images, texts), owner = cloud()
    one = EmbeddingMap({"last": (images, texts)}, owner, [f"text {i}" for i in range(120)])
    one.handle("brush", {"x": [-99, 99], "y": [-99, 99]})
    kinds = [entry["kind"] for entry in one.stage()["gallery"]]
    assert kinds == ["image"] * 6 + ["text"] * 6 and len(one.selected) == 160
    shown = [entry["item"] for entry in one.stage()["gallery"]]
    assert len(set(shown)) == GALLERY and "image 1" in one.selected["item"].tolist()


def test_the_difference_of_ranks_is_offered_where_there_is_another_model():
    """Scores of the other: each match first. Here all are second, so each is 1 lower."""
    one = cross(other=np.eye(2))
    one.handle("colour", "gain")
    assert one.problem == "" and one.shade.hollow.all() and one.shade.levels.tolist() == [1] * 4
    colours = colours_of(one.shade)
    assert colours[0] == "#0b5fa5" and colours[-1] == "#c8400e" and len(colours) == STEPS
    plain = cross()
    plain.handle("colour", "gain")
    assert "colour must be one of kind, rank, hub; got 'gain'" in plain.problem


def test_the_view_moves_and_stays_on_the_map():
    one = cross()
    whole = one.window.half
    for _ in range(40):
        one.handle("nearer")
    assert one.window.half == pytest.approx(whole / 100)
    one.handle("left")
    assert one.window.centre.tolist() == pytest.approx([-0.4 * one.window.half, 0])
    one.handle("into_view")
    assert one.window.corners.mean(axis=0).tolist() == pytest.approx(one.window.centre.tolist())
    wide = one.window.half * 2 / 3
    assert np.ptp(one.window.corners, axis=0).tolist() == pytest.approx([wide] * 2)
    one.handle("window", {"x": 99, "y": -99, "half": whole / 2})
    assert one.window.centre.tolist() == pytest.approx([whole / 2, -whole / 2])
    one.handle("all")
    assert one.window.half == whole and one.window.centre.tolist() == pytest.approx([0, 0])


def test_a_picture_that_cannot_be_opened_is_told_and_the_others_are_sent():
    def opened(image_id):
        if image_id == "west":
            raise FileNotFoundError("west.jpg")
        return Image.new("RGB", (300, 200))

    one = cross(picture=opened)
    one.handle("send", ["picture/1", "picture/0"])
    (key, text), = one.stage()["sent"].items()
    picture = Image.open(BytesIO(b64decode(text.split(",")[1])))
    assert key == "picture/0" and picture.size == (120, 80)
    assert "picture/1 could not be sent: west.jpg" in one.problem


@pytest.mark.parametrize(("change", "said"), [
    (dict(frames={}), "frames must map a name"),
    (dict(frames={0: (CROSS[0], CROSS[1][:, :1])}), "D at least 2; frame 0 has"),
    (dict(frames={0: (CROSS[0] * np.nan, CROSS[1])}), "frame 0 hold NaN or infinity"),
    (dict(frames={0: CROSS, 1: (CROSS[0][:1], CROSS[1])}), "all frames must be of the same images"),
    (dict(image_of_text=np.array([0, 0])), "every image needs at least one text"),
    (dict(texts=["one"]), "texts must be one for each of 2 vectors, in their order; got 1"),
    (dict(image_ids=["one"]), "image_ids must be one for each of 2 vectors"),
    (dict(other=np.eye(3)), "other must be scores of the same images and texts"),
    (dict(frames={0: CROSS, 1: CROSS}, scores=np.eye(2)), "scores are of one frame, but there")])
def test_vectors_that_make_no_map_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        EmbeddingMap(**dict(frames={0: CROSS}, image_of_text=OWNER, texts=["a", "b"]) | change)


def test_all_that_is_shown_is_json_and_small_and_soon_there():
    """Of 1,000 images and 5,000 texts: no points in what is sent at every change."""
    frame, owner = cloud(images=1000, each=5, size=16)
    one = EmbeddingMap({0: frame, 1: frame}, owner, ["a text <i>of some words</i>"] * 5000)
    for what in (("colour", "hub"), ("brush", {"x": [-9, 9], "y": [-9, 9]}), ("frame", 1)):
        spent = time.process_time()
        one.handle(*what)
        text = json.dumps(one.view(), allow_nan=False)
        assert time.process_time() - spent < 0.15 and len(text) < 12_000
        assert json.loads(text) == one.view()


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return Searcher(weights(SMALL), dataset_of(SMALL), encoded_data(SMALL))


def test_a_searcher_gives_its_codes_and_the_ranks_of_its_scores(searcher):
    one = EmbeddingMap.of({"one": searcher, "two": searcher})
    found = ranks(searcher.scores, searcher.split.image_of_text)
    assert one.data.known["test"].ranks.tolist() == [*found.i2t, *found.t2i]
    assert not one.data.shades["test"]["gain"].hollow.any()  # the same model twice
    assert "frame" not in one.numbers() and [entry["label"] for entry in one.controls()][:2] == [
        "Colour", "Zoom in"]
    one.handle("send", ["picture/0"])
    sent = Image.open(BytesIO(b64decode(one.stage()["sent"]["picture/0"].split(",")[1])))
    assert sent.size[0] <= 120 and one.problem == ""


def test_several_vectors_an_image_are_refused(searcher):
    several = copy.copy(searcher)
    several.images = (searcher.images, searcher.images)
    with pytest.raises(ValueError, match="a map needs one point for each image and each text: "
                       "there must be one vector .*; or give vectors yourself: EmbeddingMap"):
        EmbeddingMap.of({"several": several})


def test_the_picture_shows_squares_and_dots_on_equal_axes_with_numbers():
    one = cross(other=np.eye(2))
    for colour in ("kind", "rank", "hub", "gain"):
        one.handle("colour", colour)
        figure = one.picture()
        axes, *bar = figure.axes
        assert axes.get_xlabel() == "component 1, 90.0 % of the variance"
        assert sum(len(points.get_offsets()) for points in axes.collections) == 4
        assert axes.get_aspect() == 1 and len(bar) == (colour != "kind")
        if bar:
            assert [tick.get_text() for tick in bar[0].get_yticklabels()] == [
                text for _, text in one.shade.ticks]


def ring(far):
    return np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1) * np.tile(far, 2)[:, None]


def twelve(**named) -> EmbeddingMap:
    texts = [f"text {n}" for n in range(12)]
    return EmbeddingMap({"all": (ring(FAR), ring(FAR + 0.01))}, np.arange(12), texts,
                        scores=SCORES, **named)


def told(one: EmbeddingMap, colour: str) -> dict[str, str]:
    one.handle("colour", colour)
    assert one.problem == ""
    return one.numbers()


def test_failures_their_share_and_where_they_are():
    found = told(twelve(), "rank")
    assert {label: value for label, value in found.items() if "failures" in label} == {
        "failures": "2 of 24 (8 %)", "failures, images": "1 of 12 (8 %)",
        "failures, texts": "1 of 12 (8 %)", "failures, inner half": "0 of 12 (0 %)",
        "failures, outer half": "2 of 12 (17 %)"}


def test_the_strongest_hub_is_the_one_found_most_against_chance():
    """Of equal scores the first in order are found: the second image by all twelve texts, as the
    second text."""
    found = told(twelve(), "hub")
    assert [found[label] for label in ("never found", "strongest hub", "found by")] == [
        "0 of 24 (0 %)", "image 2", "12 of 12"]
    assert found["an image on average"] == "10.0" == found["a text on average"]
    texts = np.array([[1.0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1]])
    several = told(EmbeddingMap({0: (np.eye(2), texts)}, np.array([0, 0, 0, 1, 1]), ["<b>"] * 5),
                   "hub")
    assert list(several.values())[-6:-2] == ["image 1", "5 of 5", "5.0", "2.0"]


def test_who_is_better_off_than_by_the_other_model():
    found = told(twelve(other=np.eye(12)), "gain")
    assert (found["ranked higher here"], found["ranked lower here"]) == ("0 of 24 (0 %)",
                                                                         "2 of 24 (8 %)")
    turned = told(EmbeddingMap({0: (np.eye(2), np.eye(2))}, OWNER, ["a", "b"],
                               other=1 - np.eye(2)), "gain")
    assert turned["ranked higher here"] == "4 of 4 (100 %)"


def test_how_far_images_and_texts_are_apart():
    one = EmbeddingMap({0: (CROSS[0] + [3, 0], CROSS[0] - [3, 0])}, OWNER, ["a", "b"])
    # at 6, 0 and 0, -6: middles 6 apart, points 3 from the middle of all on average
    assert told(one, "kind")["between the middles of images and texts"] == "2.00"
    equal = EmbeddingMap({0: (np.ones((2, 3)), np.ones((2, 3)))}, OWNER, ["a", "b"])
    assert told(equal, "kind")["between the middles of images and texts"] == "0.00"
    assert "failures, outer half" not in told(equal, "rank")


def test_the_first_and_the_last_frame_are_told_whichever_is_shown():
    """Epoch 1 of the cross is its mirror image: places move by twice their distance."""
    moved = told(cross(), "kind")
    assert (moved["images moved on average"], moved["texts moved on average"]) == ("3.00", "1.00")
    (frame, owner), made = cloud(), np.random.default_rng(1)
    noise = tuple(made.normal(size=part.shape) for part in frame)
    one = EmbeddingMap({0: noise, 1: frame}, owner, ["x"] * 120, other=np.eye(40)[:, owner])
    shares = []
    for images, texts in (noise, frame):
        found = ranks((images @ texts.T).astype(np.float32), owner)
        failed = np.concatenate([found.i2t, found.t2i]) > 10
        shares.append(f"{failed.sum()} of 160 ({100 * failed.mean():.0f} %)")
    assert shares[0] != shares[1]
    for shown in (1, 2):
        one.handle("frame", shown)
        found = told(one, "rank")
        assert [found["failures, 0"], found["failures, 1"]] == shares
        assert found["failures"] == shares[shown - 1]
    assert "never found, 0" in told(one, "hub")
    assert told(one, "gain")["ranked higher here, 1"] == "0 of 160 (0 %)"  # the other is perfect
