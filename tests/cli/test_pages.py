"""Pages of executed notebooks: whole without a network, one way through all of them."""

import json
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from itr_study.lab.batch.schedule import executed_folder
from itr_study.lab.cli.lab import render_pages, rendered
from tests.test_notebooks import ALL

SENTENCE = 'R@1 peaks at "k" = 5 & falls.'
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"


@pytest.fixture
def pages(store, tmp_path) -> dict[str, BeautifulSoup]:
    """Pages by name, of two notebooks."""
    picture = new_output("display_data", {"image/png": PNG},
                         metadata={"image/png": {"alt": SENTENCE}})
    cells = [new_markdown_cell("# 00 First: *one*\n\n**Goal.** To see $x_1$.\n\nAnd more."),
             new_code_cell("k = 5", metadata={"tags": ["parameters"]}),
             new_code_cell("k = 7", metadata={"tags": ["injected-parameters"]}),
             new_code_cell("draw(k)", outputs=[picture]),
             new_code_cell("save()", metadata={"tags": ["hide-input"]}),
             new_markdown_cell("## 1. A sum\n\n$$\\sum_i x_i$$\n\n## 2. Links\n\n"
                               "[next](01_second.ipynb), [all](../README.md), "
                               "[site](https://example.org)")]
    folder = executed_folder("scenes")
    folder.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), folder / "00_first.ipynb")
    nbformat.write(new_notebook(cells=cells[:1]), folder / "01_second.ipynb")
    nbformat.write(new_notebook(cells=cells[:1]), folder / "02_third.partial.ipynb")
    assert render_pages("scenes", tmp_path / "pages") == tmp_path / "pages/scenes/index.html"
    return {path.stem: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
            for path in (tmp_path / "pages" / "scenes").glob("*.html")}


def test_nothing_is_asked_from_elsewhere(pages):
    assert set(pages) == {"index", "00_first", "01_second"}
    for page in pages.values():
        assert not page.find_all("script")
        wanted = [tag.get("src") or tag.get("href") for tag in page.select("[src], link[href]")]
        assert all(address.startswith("data:") for address in wanted)
        assert not re.search(r"@import|url\((?!['\"]?(data:|#))", str(page))


def test_formulas_are_drawn_by_the_browser(pages):
    first = pages["00_first"]
    assert first.select_one("math[display=block] munder, math[display=block] msub")
    assert "$" not in first.main.get_text() and "\\sum" not in first.main.get_text()


def test_every_formula_of_the_notebooks_becomes_mathml():
    for path in ALL:
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                page = BeautifulSoup(rendered("".join(cell["source"])), "html.parser")
                formulas = page.find_all("math")
                assert not [str(f) for f in formulas if "\\" in f.get_text()], path


def test_a_picture_has_its_sentence_and_plumbing_is_folded(pages):
    first = pages["00_first"]
    assert [image["alt"] for image in first.find_all("img")] == [SENTENCE]
    folded = {fold.summary.get_text(): fold.pre.get_text() for fold in first.select("details")}
    assert folded["code"].strip() == "save()" and folded["parameters"].strip() == "k = 7"
    shown = [pre for pre in first.select(".jp-CodeCell pre") if not pre.find_parent("details")]
    assert [pre.get_text().strip() for pre in shown] == ["draw(k)"]


def test_there_is_a_way_through_all_pages(pages):
    index = {a["href"]: a.get_text() for a in pages["index"].find_all("a")}
    assert index == {"00_first.html": "00 First: *one*", "01_second.html": "00 First: *one*"}
    assert "To see x1." in pages["index"].dd.get_text()
    ways = [a["href"] for a in pages["00_first"].nav.select("a")]
    assert ways == ["index.html", "01_second.html", "#1.-A-sum", "#2.-Links"]
    for page in pages.values():
        targets = [a["href"] for a in page.find_all("a")]
        assert all(page.find(id=t[1:]) for t in targets if t.startswith("#"))
        assert {t for t in targets if not t.startswith("#")} <= {
            "index.html", "00_first.html", "01_second.html", "https://example.org"}
    assert "all" in pages["00_first"].main.get_text()  # a link out of the pages is plain text
