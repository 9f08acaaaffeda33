"""The site: links lead somewhere, nothing comes from elsewhere, a browser can use it."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from itr_study.files.paths import evidence_folder, project_root
from itr_study.lab.batch.schedule import executed_folder
from itr_study.lab.course import exercises
from itr_study.losses import LOSSES
from tools.site.build import MARK, build, check_replaceable, linked, read_lesson
from tools.site.docstrings import as_rest, read_equations, read_parts
from tools.site.record import Sizes, live

SENTENCE = 'R@1 peaks at "k" = 5 & falls.'
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
LARGEST, DATA = 40e6, 1e6  # bytes of the site; of the vectors and texts of the search


@pytest.fixture(scope="module")
def site(sphinx, tmp_path_factory):
    """The site, of the real documents, one executed lesson and a small training."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITR_STUDY_HOME", str(home))
        lay_executed()
        target = tmp_path_factory.mktemp("site") / "html"
        build("scenes", target, home / "source", lambda: live(
            Sizes(train=60, dev=10, test=30, epochs=1), whole=False))
    return target


def lay_executed():
    """One executed notebook; of the others there is none."""
    picture = new_output("display_data", {"image/png": PNG},
                         metadata={"image/png": {"alt": SENTENCE}})
    cells = [new_markdown_cell("# 03 Executed: *one*\n\nTo see $x_1$.\n\n$$\\sum_i x_i$$"),
             new_code_cell("k = 5", metadata={"tags": ["parameters"]}),
             new_code_cell("draw(k)", outputs=[picture]),
             new_code_cell('guess_1 = None\nitr.check_answer("03.1", guess_1)'),
             new_markdown_cell("[next](04_relevance.ipynb), [paper](../shared/paper.pdf)")]
    executed_folder("scenes").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), executed_folder("scenes") / "03_topk.ipynb")


def pages_of(site):
    return {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
            for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_comes_from_elsewhere(site):
    pages = pages_of(site)
    names = {path: {tag["id"] for tag in page.select("[id]")} for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        for tag in page.select("[href], [src]"):
            address = tag.get("href") or tag.get("src") or ""
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto"):
                wrong += [(path.name, address)] if tag.name != "a" else []
            elif parts.scheme != "data" and address:
                to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                anchor = unquote(parts.fragment)
                if not to.is_file() or (anchor and to in names and anchor not in names[to]):
                    wrong.append((str(path.relative_to(site)), address))
    assert not wrong
    assert not [path for path in site.rglob("*.css")
                if re.search(r"url\(['\"]?(https?:)?//", path.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_all_parts_are_there(site):
    lessons = {path.stem for path in (site / "notebooks").glob("*.html")}
    assert lessons == {path.stem for path in (project_root() / "notebooks").glob("*.ipynb")}
    assert lessons == {path.stem for path in (site / "slides").glob("*.html")}
    for name in ("index", "play", "equations", "ledger", "search", "api/losses", "docs/glossary",
                 "docs/course", "figures/README", "figures/flickr8k/claims", "CONTRIBUTING"):
        assert (site / f"{name}.html").is_file(), name
    losses = (site / "api" / "losses.html").read_text(encoding="utf-8")
    assert all(cls.__name__ in losses for cls in LOSSES.values())
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST
    gallery = json.loads((site / "_static/live/data.js").read_text()[len("const ITR_DATA = "):-2])
    assert len(json.dumps(gallery["gallery"])) < DATA


@pytest.mark.slow
def test_an_executed_lesson_is_taken_and_the_others_say_what_they_are(site):
    page = BeautifulSoup((site / "notebooks/03_topk.html").read_text(encoding="utf-8"),
                         "html.parser")
    assert "Run on scenes." in page.article.get_text()
    assert page.article.find("img")["alt"] == SENTENCE
    assert page.article.select_one("details").get_text().strip().endswith("k = 5")
    assert page.select_one("span.math") and page.select_one("div.math")
    links = {link.get_text(): link["href"] for link in page.article.select("a.internal, a.xref")}
    assert links["next"] == "04_relevance.html" and "paper" in page.article.get_text()
    other = (site / "notebooks/04_relevance.html").read_text(encoding="utf-8")
    assert "it was not run before this page was made" in other


@pytest.mark.slow
def test_the_ledger_has_every_claim(site):
    claims = json.loads((evidence_folder() / "claims.json").read_text(encoding="utf-8"))
    page = BeautifulSoup((site / "ledger.html").read_text(encoding="utf-8"), "html.parser")
    rows = [[cell.get_text() for cell in row.select("td")] for row in page.select("tbody tr")
            if page.select_one(".ledger")]
    assert {row[0]: row[3] for row in rows} == {name: claim["outcome"]
                                                for name, claim in claims.items()}


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_drags_with_mouse_and_keys(site, page):
    page.goto((site / "play.html").as_uri())
    explorer = page.locator("[data-explorer=push_pull] .itr-explorer")
    mark = explorer.locator("[data-key=item-3]")
    mark.wait_for()
    before = float(mark.get_attribute("aria-valuenow"))
    mark.press("ArrowRight")
    page.wait_for_function("(before) => document.querySelector('[data-key=item-3]')"
                           ".getAttribute('aria-valuenow') > before", arg=before)
    place = mark.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    page.mouse.move(place["x"] + 120, place["y"] + 10, steps=5)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('[data-key=item-3]')"
                           ".getAttribute('aria-valuetext').includes('rank 1')")
    explorer.get_by_label("Loss").select_option("smooth_ndcg")
    page.wait_for_function("() => document.querySelector('.itr-numbers').textContent"
                           ".includes('loss: Smooth-NDCG')")
    assert explorer.locator(".itr-arrow").count() > 3
    named = page.evaluate("[...document.querySelectorAll('[data-explorer=push_pull] "
                          "[tabindex=\"0\"]')].every((one) => one.ariaLabel)")
    assert named


@pytest.mark.slow
@pytest.mark.browser
def test_all_explorers_come_alive_and_fit_a_phone(site, page):
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto((site / "play.html").as_uri())
    for name in ("push_pull", "learning", "search", "who_moved", "judge"):
        page.locator(f"[data-explorer={name}]").scroll_into_view_if_needed()
        page.locator(f"[data-explorer={name}] .itr-explorer .itr-numbers").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("[data-explorer=learning] input[type=range]").press("End")
    page.wait_for_function("() => document.querySelector('[data-explorer=learning] output')"
                           ".textContent === '2 of 2'")
    page.goto((site / "ledger.html").as_uri())
    page.locator(".ledger-tools input").fill("rerank")
    page.get_by_label("paper").select_option("dvse")
    shown = page.locator(".ledger tbody tr:not([hidden])")
    assert 0 < shown.count() < 358
    page.get_by_role("button", name="claim").click()
    first = shown.locator("td:first-child").all_text_contents()
    assert first == sorted(first)


@pytest.mark.slow
@pytest.mark.browser
def test_a_choice_of_letters_keeps_the_list_that_is_written_to(site, page):
    """The arguments below change with the loss; the letters of one word go to one list."""
    page.goto((site / "play.html").as_uri())
    page.get_by_label("Loss", exact=True).focus()
    page.keyboard.type("Smooth", delay=100)
    page.locator("[data-explorer=push_pull] .itr-numbers", has_text="Smooth-NDCG").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_checks_a_guess_by_keys(site, page):
    page.goto((site / "notebooks/03_topk.html").as_uri())
    page.get_by_label("Your guess (percent)").focus()
    for guess, kind in (("", "absent"), ("many", "other"), ("-1", "wrong")):
        page.keyboard.type(guess)
        page.keyboard.press("Enter")
        answer = page.locator(f".itr-check output.{kind}", has_text="03.1")
        answer.wait_for()
        page.keyboard.press("Control+a")
    assert answer.text_content().endswith(exercises()["03.1"].hint)


@pytest.mark.slow
@pytest.mark.browser
def test_without_javascript_pictures_and_texts_stay(site, page):
    plain = page.context.browser.new_context(java_script_enabled=False).new_page()
    plain.goto((site / "play.html").as_uri())
    assert plain.locator("[data-explorer=push_pull] img").get_attribute("alt")
    assert "The loss falls from" in plain.locator("[data-explorer=learning]").text_content()
    assert "PICTURE:" not in plain.content()
    plain.goto((site / "notebooks/03_topk.html").as_uri())
    assert "with JavaScript, or in the notebook" in plain.locator(".itr-check").text_content()
    assert plain.locator("article img").evaluate("picture => picture.naturalWidth") > 0


@pytest.mark.slow
@pytest.mark.browser
def test_slides_open_without_a_network(site, page):
    """Formulas are drawn, a figure has its sentence, keys turn pages."""
    page.context.set_offline(True)
    page.goto((site / "slides" / "03_topk.html").as_uri())
    page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    assert page.locator("section.present section.present h1").text_content() == "03 Executed: one"
    page.locator("section.present mjx-container svg").first.wait_for()
    page.keyboard.press("Space")
    picture = page.locator("section.present section.present img")
    assert picture.evaluate("picture => picture.naturalWidth") > 0
    assert page.locator("section.present section.present .said").text_content() == SENTENCE


def test_a_deck_has_headings_formulas_figures_exercises_and_ends_with_takeaways():
    pytest.importorskip("sphinx_revealjs")
    from tools.site.slides import slides_of

    output = new_output("display_data", {"image/png": PNG},
                        metadata={"image/png": {"alt": SENTENCE}})
    texts = ["# 99 A [title](a.md)\n\nFirst *one*. Second.\n\nNext.",
             "Prose.\n\n## 2. Two\n\n| a |\n|---|\n| $y$ |\n\n| b |\n|---|\n| c |",
             "**Exercise 99.1.** Why?", "Then (Eq. 2). No.\n\n$$z < 1$$",
             "## Takeaways\n\n- One.\n\nNext: 00.", "## Tables"]
    cells = [new_markdown_cell(text) for text in texts]
    cells.insert(2, new_code_cell("draw()", outputs=[output]))
    slides = list(slides_of(new_notebook(cells=cells), lambda png: f"{len(png)}.png"))
    assert [heading for heading, _ in slides] == [
        "99 A [title](a.md)", *["2. Two"] * 4, "Takeaways"]
    title, two, drawn, asked, then, last = (html for _, html in slides)
    assert "<h1>99 A title</h1>" in title
    assert "<em>one</em>. Second." in title and "Next." not in title
    assert "\\(y\\)" in two and "<td>c" not in two and "Prose" not in two
    assert '<img src="' in drawn and "&quot;k&quot; = 5 &amp; falls." in drawn
    assert "Why?" in asked and "\\[z &lt; 1\\]" in then and "(Eq. 2).</p>" in then
    assert "<li>One." in last and "Next" not in last


def test_only_a_site_or_an_empty_folder_is_replaced(tmp_path):
    check_replaceable(tmp_path)
    check_replaceable(tmp_path / "none")
    (tmp_path / "thesis.tex").touch()
    for other in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(ValueError, match="holds other files.*name an empty one with --folder"):
            check_replaceable(other)
    (tmp_path / MARK).parent.mkdir(parents=True)
    (tmp_path / MARK).touch()
    check_replaceable(tmp_path)


def test_a_link_out_of_the_site_becomes_plain_text(tmp_path):
    assert linked("[a](../README.md#x), [b](04_relevance.ipynb), [c](../LICENSE), [d](https://e.f)",
                  "notebooks", tmp_path) == \
        "[a](../index.md#x), [b](04_relevance.ipynb), c, [d](https://e.f)"


def test_a_notebook_that_is_missing_or_broken_is_named(tmp_path, capsys):
    assert linked("[a](notebooks/99_none.ipynb)", "", tmp_path) == "a"
    assert "notebooks/99_none.ipynb is not there" in capsys.readouterr().out
    source = project_root() / "notebooks" / "03_topk.ipynb"
    (tmp_path / "03_topk.ipynb").write_text("{")
    notebook, said = read_lesson(source, tmp_path / "03_topk.ipynb", "scenes")
    assert notebook == nbformat.read(source, as_version=4) and said.startswith("Without results")
    assert "03_topk.ipynb cannot be read" in capsys.readouterr().out


def test_a_docstring_is_split_and_written():
    doc = "Do it.\n\nWords * of\n`code`.\n\n    x = 1\n    y\n\nArgs:\n    a, b: what\n" \
          "        else\n    c: more\nSource: topk Eq. 1.\n\nExample:\n    >>> 1\n    1\n"
    assert [part.kind for part in read_parts(doc)] == [
        "text", "text", "formula", "Args", "Source", "Example"]
    lines = as_rest(doc)
    assert "* **a, b**: what else" in lines and "Words \\* of" in lines and "``code``." in lines
    assert lines[lines.index("::") + 2:][:2] == ["   x = 1", "   y"]


def test_equations_of_the_papers_are_found():
    found = read_equations(Path(project_root()))
    assert {(one.paper, one.name) for one in found} >= {
        ("topk", "TopKLoss"), ("listwise", "SmoothNDCGLoss"), ("bcls", "KendallWindowLoss"),
        ("dvse", "fast")}
    top = next(one for one in found if one.name == "TopKLoss")
    assert top.place == "Eqs. 9, 10 and 12" and "k" in dict(top.symbols)
    assert [one.first for one in found] == sorted(one.first for one in found)
