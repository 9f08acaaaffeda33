"""Slides: a deck a lesson, of its headings, formulas, figures, exercises and takeaways."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from itr_study.files.paths import project_root
from itr_study.lab.batch.schedule import executed_folder
from tools.site.build import HERE, read_lesson, write

REVEAL = files("sphinx_revealjs") / "_static" / "revealjs" / "dist"
HEADING = re.compile(r"^#{1,2} (.*)$", re.M)
SENTENCE = re.compile(r".+?(?<!Fig)(?<!Figs)(?<!Eq)(?<!Eqs)(?<! al)[.?!](?=\s|$)", re.S)
BREAK = "\n\n"  # between blocks of Markdown
LAST = "Takeaways"  # what follows is no part of the lesson
Slide = tuple[str, str]  # a heading, and the HTML below it
Picture = Callable[[bytes], str]  # keeps a PNG file and gives its address


def lay_slides(target: Path, dataset: str) -> None:
    """Write the decks into a site, with executed notebooks of a data set where there are any."""
    folder = target / "slides"
    for name in ("reveal.js", "reveal.css"):
        write(folder / name, (REVEAL / name).read_text(encoding="utf-8"))
    write(folder / "slides.css", (HERE / "slides.css").read_text(encoding="utf-8"))
    (target / "_images").mkdir(exist_ok=True)

    def picture(png: bytes) -> str:
        name = f"{sha256(png).hexdigest()}.png"  # so the page of the lesson calls it, too
        if not (target / "_images" / name).is_file():
            (target / "_images" / name).write_bytes(png)
        return f"../_images/{name}"

    for path in sorted((project_root() / "notebooks").glob("*.ipynb")):
        notebook, _ = read_lesson(path, executed_folder(dataset) / path.name, dataset)
        write(folder / f"{path.stem}.html", deck(notebook, path.stem, picture))


def deck(notebook: nbformat.NotebookNode, name: str, picture: Picture) -> str:
    """Write the page of a deck; a section of the lesson is a column of slides."""
    columns = ["\n".join(f"<section>{html}</section>" for _, html in slides)
               for _, slides in groupby(slides_of(notebook, picture), key=lambda slide: slide[0])]
    body = "\n".join(f"<section>\n{column}\n</section>" for column in columns)
    page = (HERE / "slides.html").read_text(encoding="utf-8")
    return page.replace("TITLE", escape(name)).replace("SLIDES", body)


def slides_of(notebook: nbformat.NotebookNode, picture: Picture) -> Iterator[Slide]:
    """Yield the slides of a lesson, up to its takeaways."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield from ((heading, figure(output, picture)) for output in cell.outputs
                        if "image/png" in output.get("data", {}))
            continue
        if cell.source.startswith("**Exercise "):
            yield heading, rendered(cell.source)
            continue
        before, *parts = HEADING.split(cell.source)
        if formulas_of(before):
            yield heading, rendered(f"## {heading}{BREAK}{shortened(before)}")
        for heading, text in zip(parts[::2], parts[1::2], strict=True):
            if heading == LAST:
                points = [block for block in text.split(BREAK) if block.startswith("- ")]
                yield heading, rendered(BREAK.join([f"## {heading}", *points]))
                return
            if cell is notebook.cells[0]:  # the goal
                yield heading, rendered(f"# {heading}{BREAK}{text.strip().partition(BREAK)[0]}")
            else:
                yield heading, rendered(f"## {heading}{BREAK}{shortened(text)}")


def shortened(text: str) -> str:
    """Keep the first sentence, and all formulas."""
    prose = [block for block in text.strip().split(BREAK)
             if not block.startswith(("$$", "|", "- "))]
    first = SENTENCE.match(prose[0]) if prose else None
    return BREAK.join([first[0] if first else "", *formulas_of(text)])


def formulas_of(text: str) -> list[str]:
    """Keep what is between $$, and tables with formulas."""
    return [block for block in text.strip().split(BREAK)
            if block.startswith("$$") or (block.startswith("|") and "$" in block)]


def figure(output: nbformat.NotebookNode, picture: Picture) -> str:
    """Write a figure with its sentence."""
    address = picture(b64decode(output.data["image/png"]))
    said = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    return f'<img src="{address}" alt="{escape(said)}"><p class="said">{escape(said)}</p>'


def rendered(text: str) -> str:
    """Write Markdown as HTML, formulas for MathJax, links as their words."""
    def formula(content: str, options: dict) -> str:
        left, right = ("\\[", "\\]") if options["display_mode"] else ("\\(", "\\)")
        return f"{left}{escape(content)}{right}"

    plain = re.sub(r"(?<!!)\[([^\[\]]+)\]\([^)]*\)", r"\1", text)
    return MarkdownIt("commonmark").enable("table").use(
        dollarmath_plugin, renderer=formula, double_inline=True).render(plain)
