"""Executed notebooks as pages that need neither Jupyter nor a network, and run no script."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from jinja2 import DictLoader, pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from itr_study.batch.schedule import executed_folder
from itr_study.files.atomic import write_atomic
from itr_study.progress import progress

# What the page of nbconvert brings and ours does not: scripts, of which all come from elsewhere
# (formulas are MathML, which browsers draw themselves). What ours adds: folded code, alt texts.
TEMPLATE = """{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_css -%}<style>
  nav, .jp-Notebook main { max-width: 1100px; margin: auto }
  nav { font-family: sans-serif; padding: 8px 0 } nav ul { margin: 4px 0 }
  summary { cursor: pointer; color: #6b6b6b; font: 13px sans-serif }
  img { max-width: 100% } .jp-RenderedHTML pre { font-family: var(--jp-code-font-family) }
</style>{%- endblock -%}
{%- block input_group -%}
{%- set tags = cell.metadata.get('tags', []) -%}
{%- set fold = 'code' if 'hide-input' in tags else 'parameters' if 'parameters' in tags or
    'injected-parameters' in tags else '' -%}
{%- if fold %}<details><summary>{{ fold }}</summary>{{ super() }}</details>
{%- else %}{{ super() }}{% endif -%}
{%- endblock -%}
{%- block data_png scoped -%}
{%- set alt = output | get_metadata('alt', 'image/png') -%}
{{ super() | replace('<img ', '<img alt="' ~ (alt | escape) ~ '" ') if alt else super() }}
{%- endblock -%}
"""
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>itr_study: {dataset}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark }}
body {{ max-width: 46em; margin: 2em auto; padding: 0 1em; font-family: sans-serif }}</style>
</head><body><h1>The notebooks, executed on {dataset}</h1><dl>
{entries}
</dl></body></html>
"""
GOAL = re.compile(r"\*\*Goal\.\*\*\s*(.+?)(?:\n\s*\n|$)", re.DOTALL)


class Formulas(IPythonRenderer):
    """Markdown whose formulas become MathML."""

    def block_math(self, body: str) -> str:
        return convert(body, display="block")

    def inline_math(self, body: str) -> str:
        return convert(body)


class PageExporter(HTMLExporter):
    """The page of nbconvert by our template, with `Formulas`."""

    def __init__(self):
        super().__init__(extra_loaders=[DictLoader({"page.html.j2": TEMPLATE})],
                         template_file="page.html.j2")

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        return MarkdownWithMath(renderer=Formulas(escape=False)).render(source)


def render_pages(dataset: str, folder: Path) -> Path:
    """Write a page for every executed notebook of a data set, and the index, which is returned.

    Raises:  ValueError where none was executed.
    """
    done = sorted(p for p in executed_folder(dataset).glob("*.ipynb")
                  if not p.name.endswith(".partial.ipynb"))
    if not done:
        raise ValueError(f"no executed notebooks in {executed_folder(dataset)}; "
                         "run: itr-study reproduce")
    target, names, entries = folder / dataset, [path.stem for path in done], []
    exporter = PageExporter()
    for path in progress(done, "pages"):
        notebook = nbformat.read(path, as_version=4)
        page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": path.stem}})
        write_atomic(target / f"{path.stem}.html", in_its_place(page, path.stem, names).encode())
        entries.append(entry(path.stem, notebook))
    index = INDEX.format(dataset=escape(dataset), entries="\n".join(entries))
    write_atomic(target / "index.html", index.encode())
    return target / "index.html"


def entry(name: str, notebook: nbformat.NotebookNode) -> str:
    """What the index says of a page: its title, and its goal where the notebook names one."""
    text = next((c.source for c in notebook.cells if c.cell_type == "markdown"), "")
    title = text.splitlines()[0].lstrip("# ") if text else name
    goal = GOAL.search(text)
    about = BeautifulSoup(MarkdownWithMath(renderer=Formulas(escape=False)).render(
        goal[1]), "html.parser").get_text() if goal else ""
    return f'<dt><a href="{name}.html">{escape(title)}</a></dt><dd>{escape(about)}</dd>'


def in_its_place(page: str, name: str, names: Sequence[str]) -> str:
    """A page with the way to the others and its contents; links to notebooks lead to their pages,
    other links into the repository, which is not there, become plain text."""
    soup, at = BeautifulSoup(page, "html.parser"), names.index(name)
    for link in soup.select("a[href]:not(.anchor-link)"):
        stem = link["href"].removesuffix(".ipynb")
        if stem in names:
            link["href"] = f"{stem}.html"
        elif not link["href"].startswith(("http:", "https:", "#")):
            link.unwrap()
    ways = ['<a href="index.html">All pages</a>']
    ways += [f'<a href="{names[at - 1]}.html">‹ {names[at - 1]}</a>'] * (at > 0)
    ways += [f'<a href="{other}.html">{other} ›</a>' for other in names[at + 1:at + 2]]
    around, contents = f"<nav>{' · '.join(ways)}</nav>", soup.new_tag("ul")
    for head in soup.select("h2[id]"):
        words = escape(head.get_text().removesuffix("¶"))
        item = f'<li><a href="#{escape(head["id"], quote=True)}">{words}</a></li>'
        contents.append(BeautifulSoup(item, "html.parser"))
    soup.body.insert(0, BeautifulSoup(around, "html.parser"))
    soup.nav.append(contents)
    soup.body.append(BeautifulSoup(around, "html.parser"))
    return str(soup)
