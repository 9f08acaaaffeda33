"""What all explorers share: what a reader does, why it cannot be done, and what remains without a
kernel."""

import doctest
import json
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

from itr_study.explorers import explorer as base
from itr_study.explorers.explorer import Explorer, button, choice, control, slider
from itr_study.plots.style import canvas


class Counter(Explorer):
    """Counts; refuses to go below 0, and breaks at 13."""

    drawing, title = "push_pull", "A <counter>"

    def __init__(self):
        self.count = 0

    def controls(self):
        return [slider("to", "To", self.to, self.count, 0, 9, 1),
                button("more", "More", lambda _: self.to(self.count + 1))]

    def to(self, count):
        if count < 0:
            raise ValueError("a count is 0 or more")
        if count == 13:
            raise ZeroDivisionError("unlucky")
        self.count = count

    def stage(self):
        return {"count": self.count}

    def numbers(self):
        return {"count": f"{self.count} & \"more\""}

    def picture(self):
        return canvas()[0]

    @property
    def selected(self):
        return self.count


def test_what_a_reader_does_is_done():
    one = Counter()
    one.handle("to", 4)
    one.handle("more")
    assert one.selected == 5 and one.problem == ""
    view = one.view()
    assert [entry["name"] for entry in view.pop("controls")] == ["to", "more"]
    assert view == {"title": "A <counter>", "stage": {"count": 5}, "problem": "", "note": "",
                    "numbers": [["count", "5 & \"more\""]]}


@pytest.mark.parametrize(("name", "value", "said"), [
    ("to", -1, "a count is 0 or more"),
    ("less", None, "there is nothing called 'less' here; there are to, more"),
    ("to", 13, "This could not be done. ZeroDivisionError: unlucky")])
def test_what_cannot_be_done_is_a_sentence_until_something_can(name, value, said, caplog):
    one = Counter()
    one.handle("to", 2)
    one.handle(name, value)
    assert one.problem == said and one.view()["problem"] == said and one.count == 2
    assert ("unlucky" in caplog.text) == (value == 13)  # a fault of ours is also logged, whole
    one.handle("more")
    assert one.problem == "" and one.count == 3


def test_the_page_gets_controls_as_json():
    one = Counter()
    one.controls = lambda: [slider("a", "A", one.to, 1, 0, 2, 1), button("c", "C", one.to, True),
                            choice("b", "B", one.to, "x", {"x": "X", "y": "Y"}),
                            control("checkbox", "d", "D", one.to, True)]
    made = one.view()["controls"]
    assert json.loads(json.dumps(made)) == made
    assert [(each["name"], each["label"]) for each in made] == [
        ("a", "A"), ("c", "C"), ("b", "B"), ("d", "D")]


class Images(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.alts, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "img":
            self.alts.append(dict(attributes)["alt"])


def shown(one, monkeypatch, live):
    displayed = []
    monkeypatch.setattr(base, "in_notebook", lambda: live)
    monkeypatch.setattr(base, "display", displayed.append)
    one._ipython_display_()
    return displayed


def test_a_batch_keeps_the_picture_and_the_sentence(monkeypatch):
    (page,) = shown(Counter(), monkeypatch, live=False)
    found = Images(page.data)
    assert found.alts == ['A <counter>. count: 0 & "more"'] and "details" not in found.tags
    assert ">count</th>" in page.data and ">0 &amp; &quot;more&quot;</td>" in page.data
    assert "<counter>" not in page.data and "A &lt;counter&gt;" in page.data


def test_a_live_notebook_has_the_widget_and_below_it_the_same(monkeypatch):
    one = Counter()
    widget, page = shown(one, monkeypatch, live=True)
    assert widget.explorer is one and widget.view["stage"] == {"count": 0}
    assert "details" in Images(page.data).tags and Images(page.data).alts


@pytest.mark.parametrize("module", [
    path.stem for path in Path(base.__file__).parent.glob("*.py")
    if ">>>" in path.read_text("utf-8")])
def test_examples(module):
    failed, tried = doctest.testmod(import_module(f"itr_study.explorers.{module}"))
    assert tried and not failed
