"""Explorers in a real browser: each is opened, used by its labels, and its text read back.

One page of JupyterLab, a cell an explorer. As in tests/test_browser.py every error in the console
and every request that leaves this machine fails.
"""

import nbformat
import pytest

from itr_study.explorers.pictures import LARGEST
from itr_study.explorers.widget import STATIC
from tests.posix import posix_only
from tests.small_runs import SMALL
from tests.test_browser import server

pytestmark = [pytest.mark.browser, pytest.mark.slow, posix_only]
CELLS = {
    "models": f"""
from copy import copy
from itr_study import explorers
from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.background import BackgroundRun
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
config = RunConfig.model_validate({SMALL.model_dump(mode="json")!r})
pushed = explorers.PushPull()
def searcher(seed):
    one = config.with_(seed=seed)
    return Searcher(weights(one), dataset_of(one), encoded_data(one))
one, two = searcher(0), searcher(1)
def reading(one):  # takes pictures: what is none is refused before a network sees it
    one = copy(one)
    one.data = copy(one.data)
    one.data.image_encoders = [None]
    return one
""",
    "push_pull": "pushed",
    "search": "explorers.Search({'one': reading(one), 'two': reading(two)})",
    "who_moved": "explorers.WhoMoved.of({'one': one, 'two': two})",
    "judge": "explorers.YouJudge.of(one.dataset, {'one': one})",
    "map": "explorers.EmbeddingMap.of({'one': one, 'two': two})",
    "looking": "explorers.Looking({'one': one, 'two': two})",
    "training": "explorers.Training(BackgroundRun(config.with_(seed=7,"
                " **{'settings.epochs': 150})))",
    "push_pull again": "pushed",
    "another push_pull": "explorers.PushPull()"}


class Pane:
    """One explorer on the page."""

    def __init__(self, page, place):
        self.page, self.root = page, page.locator(".itr-explorer").nth(place)

    def answered(self) -> "Pane":
        """Once Python has answered all that was done."""
        self.page.wait_for_function(
            "node => node.dataset.busy !== '1'", arg=self.root.element_handle())
        return self

    def said(self) -> str:
        return self.root.locator(".itr-numbers").text_content()

    def problem(self) -> str:
        return self.root.locator(".itr-problem").text_content()


@pytest.fixture
def panes(page, store, tmp_path):
    """Every explorer of CELLS by name, and the page."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.values()],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    nbformat.write(notebook, tmp_path / "explorers.ipynb")
    with server(tmp_path) as address:
        page.goto(f"{address}/lab/tree/explorers.ipynb")
        page.get_by_text("Python 3 | Idle").wait_for()
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        page.get_by_text("Run All Cells", exact=True).click()
        shown = list(CELLS)[1:]
        page.locator(".itr-explorer").nth(len(shown) - 1).wait_for()
        yield {name: Pane(page, place) for place, name in enumerate(shown)}, page
        page.goto("about:blank")


def test_every_drawing_is_opened_here():
    drawings = {file.stem for file in STATIC.glob("*.js")} - {"shell"}
    assert drawings <= set(CELLS)


def test_every_explorer_is_used(panes):
    by_name, page = panes
    push_and_pull(by_name["push_pull"])
    search(by_name["search"])
    who_moved(by_name["who_moved"])
    judge(by_name["judge"])
    map_(by_name["map"])
    looking(by_name["looking"])
    training(by_name["training"])
    two_of_one_kind(by_name["push_pull again"], by_name["push_pull"],
                    by_name["another push_pull"])
    kernel_is_restarted(by_name["search"], page)
    kernel_is_gone(by_name["push_pull"], page)


def push_and_pull(pane):
    pane.root.get_by_label("Loss").select_option("topk")
    assert "loss: Top-k" in pane.answered().said()
    mark = pane.root.get_by_role("slider", name="score of a brown puppy plays on a lawn")
    mark.focus()
    for _ in range(5):
        mark.press("ArrowLeft")
    said = pane.answered().root.locator("[data-key=item-2]").get_attribute("aria-valuetext")
    assert said.startswith("0.50, rank 2")
    pane.root.get_by_role("button", name="Step until the matches are first").click()
    assert "matches first: yes" in pane.answered().said()


def search(pane):
    box = pane.root.get_by_label("Your sentence")
    box.fill("a red <b>circle</b>")
    box.press("Enter")
    assert "rank of the match, one: unknown" in pane.answered().said()
    assert pane.root.locator(".itr-query").text_content() == "Query“a red <b>circle</b>”"
    box.fill("")
    box.press("Enter")
    assert "holds no word" in pane.answered().problem()
    pane.root.get_by_label("Your picture").set_input_files(
        {"name": "mine.png", "mimeType": "image/png", "buffer": b"no picture"})
    assert "mine.png cannot be read as a picture" in pane.answered().problem()
    pane.root.get_by_label("Your picture").set_input_files(  # the server takes it
        {"name": "large.png", "mimeType": "image/png", "buffer": b"\0" * LARGEST})
    assert "large.png cannot be read as a picture" in pane.answered().problem()
    pane.root.get_by_role("button", name="Next query").click()
    assert pane.answered().problem() == "" and "unknown" not in pane.said()


def who_moved(pane):
    before = pane.said()
    pane.root.get_by_role("button", name="Next query").click()
    assert pane.answered().said() != before and "query: Picture" in pane.said()
    pane.root.get_by_label("Who asks").select_option("t2i")
    assert "query: Text" in pane.answered().said()


def judge(pane):
    for grade in (1, 2, 3, 4):
        pane.root.locator(f"[data-key=grade-{grade}]").click()
        pane.answered()
    assert "rated: 4 of 20 pairs" in pane.said()
    pane.root.locator("[data-key=card]").press("2")
    assert "τ-c, you: " in pane.answered().said()


def map_(pane):
    pane.root.get_by_label("Colour", exact=True).select_option("rank")
    assert "images, texts in the rectangle" in pane.answered().said()


def looking(pane):
    first, heat = pane.said(), pane.root.get_by_role("img", name="most at")
    assert "the whole text" in pane.root.get_by_role("group", name="The text").text_content()
    before = heat.get_attribute("src")
    pane.root.get_by_role("button", name="Next text").click()
    assert pane.answered().said() != first and "pair: Text 2, its own picture" in pane.said()
    pane.root.get_by_label("Model").select_option("two")
    assert "model: two" in pane.answered().said()
    pane.root.get_by_label("Picture, 1 to 10").fill("7")
    pane.root.get_by_label("Picture, 1 to 10").press("Enter")
    assert "another picture 7" in pane.answered().said()
    assert heat.get_attribute("src") != before and pane.problem() == ""


def training(pane):
    """Stopped in the middle, it goes on to its end."""
    def until(words):
        pane.page.wait_for_function("([node, words]) => node.textContent.includes(words)", arg=[
            pane.root.locator(".itr-numbers").element_handle(), words])

    press = {name: pane.root.get_by_role("button", name=name, exact=True)
             for name in ("Start", "Stop and save", "Go on")}
    press["Start"].click()
    until("best epoch")
    assert press["Start"].is_disabled() and press["Go on"].is_disabled()
    press["Stop and save"].click()
    until("stopped; Go on")
    done = int(pane.said().split(" of 150")[0].split()[-1])
    assert 0 < done < 150 and press["Stop and save"].is_disabled()
    press["Go on"].click()
    until("state: doneepochs: 150 of 150")


def two_of_one_kind(again, first, other):
    """The same explorer displayed twice is one; another of its kind is another."""
    assert again.said() == first.said() != other.said()
    alone = other.said()
    loss = again.root.get_by_label("Loss")
    loss.focus()
    loss.select_option("ladder")
    assert again.answered().said().startswith("loss: Ladder")
    again.page.wait_for_function("node => node.textContent.startsWith('loss: Ladder')",
                                 arg=first.root.locator(".itr-numbers").element_handle())
    assert first.root.get_by_label("Loss").input_value() == "ladder" and other.said() == alone
    assert loss.evaluate("node => node === document.activeElement")
    mark = other.root.get_by_role("slider", name="score of a brown puppy plays on a lawn")
    mark.press("ArrowLeft")
    assert other.answered().said() != alone and again.said().startswith("loss: Ladder")
    assert other.root.evaluate("node => node.contains(document.activeElement)")
    other.root.get_by_text("Step", exact=True).focus()
    ids = again.page.evaluate("""[...document.querySelectorAll(".itr-explorer [id]")]
      .map((node) => node.id)""")
    assert len(set(ids)) == len(ids) > 30
    named = again.page.evaluate("""[...document.querySelectorAll(".itr-explorer label[for]")]
      .every((label) => label.control?.closest(".itr-explorer")
        === label.closest(".itr-explorer"))""")
    assert named


def kernel_is_restarted(pane, page):
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").first.click()
    page.get_by_text("Restart Kernel…", exact=True).first.click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    page.wait_for_function("""[...document.querySelectorAll(".itr-explorer .itr-problem")]
      .every((node) => node.textContent.includes("not alive any more"))""")
    page.get_by_text("Python 3 | Idle").wait_for()
    pane.root.get_by_role("button", name="Next query").click()
    assert "Run its cell again" in pane.problem()


def kernel_is_gone(pane, page):
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").first.click()
    page.get_by_text("Shut Down Kernel", exact=True).first.click()
    page.get_by_text("No Kernel").first.wait_for()
    pane.root.get_by_role("button", name="Start again").click()
    assert "its kernel was restarted or shut down" in pane.problem()
