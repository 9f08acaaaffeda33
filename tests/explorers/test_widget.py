"""The thin skin: what it sends to the page, and how it answers."""

import re

import pytest

from itr_study.explorers import PushPull
from itr_study.explorers.widget import STATIC, widget_of


def message(skin, name, value, serial):
    skin._handle_custom_msg({"name": name, "value": value, "serial": serial}, [])


def test_a_message_is_heard_and_answered_with_its_serial():
    one = PushPull()
    skin = widget_of(one)
    assert skin.view["serial"] == 0
    message(skin, "drag", {"item": 2, "score": 0.1}, 7)
    assert one.scores[2] == 0.1 and skin.view["stage"]["items"][2]["score"] == 0.1
    assert skin.view["serial"] == 7 and skin.view["problem"] == ""
    message(skin, "drag", {"item": 99, "score": 0.1}, 8)
    assert "there is no text of index 99" in skin.view["problem"] and skin.view["serial"] == 8


def test_what_is_done_in_python_is_shown_too():
    one = PushPull()
    skin = widget_of(one)
    one.handle("loss", "topk")
    skin.show()
    assert skin.view["stage"]["loss"] == "Top-k" and skin.view["serial"] == 0


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
