"""The widget: what it sends to the page, and how it answers."""

import re

import pytest

from itr_study.explorers import PushPull
from itr_study.explorers.widget import STATIC, make_widget


def message(widget, name, value, serial):
    widget._handle_custom_msg({"name": name, "value": value, "serial": serial}, [])


def test_a_message_is_heard_and_answered_with_its_serial():
    one = PushPull()
    widget = make_widget(one)
    assert widget.view["serial"] == 0
    message(widget, "drag", {"item": 2, "score": 0.1}, 7)
    assert one.scores[2] == 0.1 and widget.view["stage"]["items"][2]["score"] == 0.1
    assert widget.view["serial"] == 7 and widget.view["problem"] == ""
    message(widget, "drag", {"item": 99, "score": 0.1}, 8)
    assert "item must be an integer >= 0 and <= 9, got 99" in widget.view["problem"]
    assert widget.view["serial"] == 8


def test_an_explorer_that_is_displayed_twice_is_the_same_in_both():
    one = PushPull()
    first, second = make_widget(one), make_widget(one)
    message(first, "loss", "ladder", "a/1")
    assert second.view["stage"]["loss"] == "Ladder" == first.view["stage"]["loss"]
    assert second.view["serial"] == 0 and first.view["serial"] == "a/1"


def test_what_is_done_in_python_is_shown_too():
    one = PushPull()
    widget = make_widget(one)
    one.handle("loss", "topk")
    widget.show()
    assert widget.view["stage"]["loss"] == "Top-k" and widget.view["serial"] == 0


@pytest.mark.parametrize("file", sorted(STATIC.glob("*")), ids=lambda file: file.name)
def test_nothing_is_fetched_from_anywhere(file):
    text = file.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, never asked
    assert not re.search(r"\bimport\b|\brequire\b|@import|url\(", text)


def test_texts_reach_the_page_as_texts():
    """No drawing writes markup: a caption with tags in it must be shown, never run."""
    for file in STATIC.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write",
                             file.read_text(encoding="utf-8")), file.name
