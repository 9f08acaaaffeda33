"""What a broken or hostile page sends: always a sentence, never a state that is half changed."""

import json
import math
from base64 import b64decode, b64encode
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from itr_study.explorers import EmbeddingMap, Looking, PushPull, Search
from itr_study.explorers.explorer import control, slider
from itr_study.explorers.messages import MOST, check_value, quote, read_number
from itr_study.explorers.pictures import encode_thumbnail, read_upload
from itr_study.explorers.push_pull import Item
from itr_study.explorers.ranked import Ranked
from itr_study.explorers.widget import make_widget
from tests.evaluation.looking import searcher
from tests.explorers.searchers import two_searchers
from tests.explorers.test_embedding_map import cross
from tests.explorers.test_push_pull import THREE
from tests.explorers.test_rating_game import made as judge
from tests.explorers.test_training import Said, Training
from tests.explorers.test_who_moved import made as who_moved

MAKERS = {"push_pull": lambda: PushPull(THREE), "search": lambda: Search(two_searchers()),
          "who_moved": who_moved, "judge": judge, "map": lambda: cross(other=np.eye(2)),
          "looking": lambda: Looking({"saf": searcher("saf"), "dvse": searcher("dvse")}),
          "training": lambda: Training(Said("running"))}
BAD = [
    None, True, 3.7, -1, 1e300, -1e300, 10 ** 400, math.nan, math.inf, "", "1", "9" * 5000, "²",
    "<b>x</b>", "🐕", [], [1], [[1]], {}, {"item": True, "score": 0.1}, {"item": 0, "score": "1"},
    {"item": 0, "score": 10 ** 400}, {"index": None}, {"index": "x"}, {"index": math.nan},
    {"index": math.inf}, {"index": True}, {"index": 1.7}, {"grade": "2"}, {"grade": 2, "pair": "1"},
    {"grade": 2, "pair": True}, {"grade": 2, "pair": [1]}, {"pair": 1}, {"x": [0, 1]},
    {"x": [0, 10 ** 400], "y": [0, 1]}, {"x": [True, False], "y": [0, 1]}, {"x": {}, "y": 1},
    {"x": 0, "y": 0, "half": -1}, {"x": 10 ** 400, "y": 0, "half": 1}, ["shade/rank/-1"],
    ["shade"], ["places/"], [{}], ["x"] * 10_000, {"name": None, "size": 1, "data": 5},
    {"name": "a", "size": "9", "data": "QUJD"}, {"name": "a", "size": None, "data": None},
    {"name": "a" * 9999, "size": 9, "data": "abc"}, {"name": "a", "size": 9, "data": "é"}]
BUTTONS = {"step", "run", "start", "back", "forward", "open", "next", "previous", "export",
           "nearer", "farther", "left", "right", "up", "down", "all", "into_view", "stop", "go_on",
           "poll"}  # they take no value
NO_SENTENCE = ("Error", "object", "argument", "convert", "padding", "unhashable", "literal")


@pytest.mark.parametrize("kind", MAKERS)
def test_whatever_a_page_sends_is_done_or_refused_in_words(kind):
    one = MAKERS[kind]()
    before = json.dumps(one.stage(), allow_nan=False)
    names = {control["name"] for control in one.controls()} | {*one.events}
    for action in {*names, "nothing", None, 5} - BUTTONS:
        for value in BAD:
            one.handle(action, value)
            if not one.problem:
                assert json.dumps(one.view(), allow_nan=False)
                one = MAKERS[kind]()
                continue
            what = (action, quote(value), one.problem)
            assert len(one.problem) <= MOST and not any(word in one.problem
                                                        for word in NO_SENTENCE), what
        assert json.dumps(one.stage(), allow_nan=False) == before, action


@pytest.mark.parametrize(("kind", "name", "value", "said"), [
    ("push_pull", "loss", ["topk"], "Loss must be a text, got ['topk']"),
    ("push_pull", "set-margin", "0.3", "margin must be a finite number, got '0.3'"),
    ("push_pull", "set-margin", 7, "margin must be >= 0.0 and <= 0.6, got 7"),
    ("push_pull", "drag", None, "a text that is moved must come with its item and score, got None"),
    ("push_pull", "drag", {"item": True, "score": 0},
     "item must be an integer >= 0 and <= 2, got True"),
    ("search", "take", {"index": "x"}, "index must be an integer"),
    ("search", "go", math.nan, "Query must be a finite number, got nan"),
    ("search", "rerank", "yes", "Re-ranked (FR) must be on or off"),
    ("search", "upload", {"name": "a"}, "Your picture must come with its name and size and data"),
    ("search", "upload", {"name": "a.png", "size": 3, "data": "abc"}, "a.png did not arrive whole"),
    ("search", "upload", {"name": "a.png", "size": 3, "data": "A" * 27_000_000},
     "a.png has 20 MB; at most 7 MB are read"),
    ("who_moved", "direction", "", "direction must be one of"),
    ("who_moved", "query", "9" * 5000, "Query must be a whole number from 1 to 2; got '999"),
    ("looking", "point", {"index": True}, "index must be an integer"),
    ("looking", "picture", "13", "Picture must be a whole number from 1 to 12; got '13'"),
    ("judge", "rate", {"grade": 2, "pair": True}, "pair must be an integer"),
    ("judge", "rate", None, "a rating must come with its grade, got None"),
    ("map", "window", {"x": 0, "y": 0, "half": -1}, "half must be > 0"),
    ("map", "send", ["shade/rank/-1"], "there is no 'shade/rank/-1' on this map"),
    ("map", "send", ["x"] * 200, "no more than 100 names")])
def test_the_sentence_says_what_was_expected(kind, name, value, said, monkeypatch):
    one = MAKERS[kind]()
    if name == "upload":  # models that take no picture would say that alone
        monkeypatch.setattr(one.sides[0].searcher.data, "image_encoders", [None])
    one.handle(name, value)
    assert said in one.problem


def test_controls_take_what_they_send():
    check_value(slider("a", "A", print, 1, 0, 2, 1), np.float32(0.5))
    check_value(control("checkbox", "b", "B", print, True), False)
    assert type(read_number("x", np.float32(0.5))) is float and read_number("x", 3) == 3
    with pytest.raises(ValueError, match="x must be a finite number, got a number beyond all"):
        read_number("x", 10 ** 5000)


def file_of(data: bytes) -> dict:
    return {"name": "mine", "size": len(data), "data": b64encode(data).decode()}


def test_no_broken_picture_is_more_than_refused():
    """Bytes of pictures changed here and there: Pillow raises many kinds of errors."""
    random, refused = np.random.default_rng(0), 0
    noise = Image.fromarray(random.integers(0, 255, (16, 16, 3), np.uint8))
    for kind in ("png", "jpeg", "gif", "tiff", "bmp", "webp"):
        target = BytesIO()
        noise.save(target, kind)
        for _ in range(60):
            data = np.frombuffer(target.getvalue(), np.uint8).copy()
            places = random.integers(0, min(len(data), 300), 6)
            data[places] = random.integers(0, 255, 6)
            try:
                read_upload(file_of(data.tobytes()))
            except ValueError as error:
                refused += 1
                assert "mine" in str(error) and len(str(error)) < 400
    assert refused > 100


@pytest.mark.parametrize("data", [
    b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9"])
def test_drawings_that_are_programs_are_not_opened(data):
    with pytest.raises(ValueError, match="mine cannot be read as a picture"):
        read_upload(file_of(data))


def test_a_view_that_cannot_be_made_is_answered_all_the_same():
    """Without an answer the page would hold back all that comes after it."""
    one = judge()
    widget = make_widget(one)
    shown, one.show = one.show, SimpleNamespace()  # its pictures are gone
    widget._handle_custom_msg({"name": "forward", "serial": "a/1"}, [])
    assert widget.view["serial"] == "a/1" and widget.view["stage"]["place"] == 1
    assert "What was chosen cannot be shown (TypeError" in widget.view["problem"]
    one.show = shown
    widget._handle_custom_msg({"name": "back", "serial": "a/2"}, [])
    assert widget.view["serial"] == "a/2" and widget.view["problem"] == ""
    widget._handle_custom_msg({}, [])  # of no page of ours
    assert "there is nothing called None" in widget.view["problem"]


def test_lists_that_are_none_are_refused_and_numbers_of_numpy_taken():
    with pytest.raises(ValueError, match="an item is a text, its relevance and its score"):
        PushPull([("a dog", 1.0)])
    with pytest.raises(ValueError, match="relevance of 'a' must be a finite number, got None"):
        PushPull([("a", None, 0.1), ("b", 0.5, 0.1)])
    one = PushPull([Item("a", np.float32(1), np.float32(0.5)), Item("b", np.float64(0.5), 0)])
    assert json.dumps(one.view(), allow_nan=False) and one.problem == ""


def test_a_model_that_diverged_is_refused():
    lost = SimpleNamespace(scores=np.array([[np.nan, 1.0]]))
    with pytest.raises(ValueError, match="the scores of 'lost' hold NaN or infinity"):
        Ranked("lost", lost)


@pytest.mark.parametrize(("make", "said"), [
    (lambda: PushPull(None), "items must be a list"),
    (lambda: Search(None), "Search takes 1 to 2 models by name"),
    (lambda: Search([1]), "Search takes 1 to 2 models by name"),
    (lambda: Search(two_searchers(), np.ones((2, 2))), "got shape (2, 2)"),
    (lambda: Search(two_searchers(), two_searchers()["one"].scores * np.nan), "found nan to nan"),
    (lambda: who_moved(names=None), "names must be two"),
    (lambda: who_moved(texts=None), "of the 0 texts"),
    (lambda: EmbeddingMap(None, [0], ["a"]), "frames must map a name"),
    (lambda: EmbeddingMap({0: None}, [0], ["a"]), "frame 0 must be (images"),
    (lambda: EmbeddingMap({0: (np.ones((1, 2)),) * 2}, np.array([0]), None), "got none"),
    (lambda: judge(images=None), "images and texts must be one for each pair"),
    (lambda: judge(picture=None), "picture must be a function"),
    (lambda: judge(scores=[1]), "scores must map a name to 40 numbers")])
def test_what_no_explorer_can_be_made_of_is_refused_in_a_sentence(make, said):
    with pytest.raises(ValueError) as caught:
        make()
    assert said in str(caught.value)


def test_a_list_without_any_result_has_a_picture():
    one = Search({"one": two_searchers()["one"]})
    one._found = {"one": [one._found["one"][0]._replace(match=True)]}
    one.handle("switch", "negatives")
    assert one.stage()["sides"][0]["hits"] == [] and one.picture().axes


def test_pictures_in_a_page_keep_their_shape():
    uri = encode_thumbnail(Image.new("RGB", (300, 200)), 60)
    assert Image.open(BytesIO(b64decode(uri.split(",")[1]))).size == (60, 40)
