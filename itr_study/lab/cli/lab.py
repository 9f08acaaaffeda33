"""JupyterLab on working copies: what a reader tries out changes nothing that git keeps."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from itertools import chain, count
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from jinja2 import DictLoader, pass_context
from jinja2.runtime import Context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from itr_study.checks import check_choice
from itr_study.files.atomic import read_json, sha256_file, write_atomic, write_json
from itr_study.files.paths import MY_REMEDY, check_writable, home, my_folder, project_root
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.batch.execute import make_kernelspec
from itr_study.lab.batch.schedule import executed_folder
from itr_study.progress import progress

ORIGINS = ".origins.json"  # in my/
SETTINGS = {
    # nothing covers a view, and no site is asked about news and newer versions
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # a notebook opened again shows its controls, without an error that their state is unknown
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
}


def working_copies(fresh: Sequence[str] = ()) -> list[Path]:
    """Copy every notebook and every solution that `my/` does not hold yet; what it holds stays.

    Those named in `fresh` are copied again, and the former kept as `03_topk.before.ipynb` …

    Returns: the copies of the notebooks, in reading order.
    """
    check_writable(my_folder(), MY_REMEDY)
    renewed = find_notebooks(fresh) if fresh else []
    copied = origins()
    for source, copy in sources_and_copies():
        again = source.name in {path.name for path in renewed} and copy.exists()
        if again and (source in renewed or source.read_bytes() != copy.read_bytes()):
            copy.rename(free_name(copy))
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copied[name_of(copy)] = sha256_file(source)
    write_json(my_folder() / ORIGINS, copied)
    return [my_folder() / path.name for path in find_notebooks()]


def sources_and_copies() -> list[tuple[Path, Path]]:
    """Every notebook and every solution there is, with the place of its copy."""
    pairs = [(path, my_folder() / path.name) for path in find_notebooks()]
    pairs += [(path.parent / "solutions" / path.name, my_folder() / "solutions" / path.name)
              for path, _ in pairs]
    return [(source, copy) for source, copy in pairs if source.is_file()]


def origins() -> dict[str, str]:
    """What was copied: name of a copy -> sha256 of its source when it was copied."""
    path = my_folder() / ORIGINS
    return read_json(path) if path.is_file() else {}


def name_of(copy: Path) -> str:
    """A copy as people write it: solutions/03_topk.ipynb."""
    return copy.relative_to(my_folder()).as_posix()


def advice() -> str:
    """Which copies are older than their source, and how to renew them; empty where none is."""
    copied = origins()
    copies = [copy for source, copy in sources_and_copies() if copy.exists()
              and sha256_file(source) not in (copied.get(name_of(copy)), sha256_file(copy))]
    if not copies:
        return ""
    again = " ".join(f"--fresh {stem}" for stem in dict.fromkeys(copy.stem for copy in copies))
    return (f"Changed in notebooks/ since you have your copy: {', '.join(map(name_of, copies))}\n"
            f"To copy again (yours is kept): itr-study lab {again}")


def free_name(path: Path) -> Path:
    """Where a former copy goes: the first name that is not taken."""
    names = (path.with_name(f"{path.stem}.before{n}.ipynb") for n in chain([""], count(2)))
    return next(name for name in names if not name.exists())


def lab_arguments(first: Path, options: Sequence[str]) -> list[str]:
    """Show all files of the project, or of another folder of copies; the user's options win."""
    root = project_root() if first.is_relative_to(project_root()) else first.parent
    given = {option.partition("=")[0] for option in options}
    ours = []
    if given.isdisjoint(("--ServerApp.root_dir", "--notebook-dir")):
        ours.append(f"--ServerApp.root_dir={root}")
    if "--LabApp.default_url" not in given:
        ours.append(f"--LabApp.default_url=/lab/tree/{first.relative_to(root).as_posix()}")
    return [*ours, *options]


def lab_environment() -> dict[str, str]:
    """Make this very interpreter the kernel `python3`; our settings yield to the user's own."""
    folder = home() / "jupyter"
    make_kernelspec(folder)
    write_json(folder / "config" / "labconfig" / "default_setting_overrides.json", SETTINGS)

    def before(name: str, path: Path) -> str:
        return os.pathsep.join(filter(None, [str(path), os.environ.get(name)]))

    # Open tabs are remembered for each project: those of another would not be found here.
    workspaces = os.environ.get("JUPYTERLAB_WORKSPACES_DIR", str(folder / "workspaces"))
    return {"JUPYTER_PATH": before("JUPYTER_PATH", folder),
            "JUPYTER_CONFIG_PATH": before("JUPYTER_CONFIG_PATH", folder / "config"),
            "JUPYTERLAB_WORKSPACES_DIR": workspaces}


def open_lab(options: Sequence[str] = (), fresh: Sequence[str] = ()) -> None:
    """Open JupyterLab at the copy of notebook 00, in this very process, with which it ends."""
    first, *_ = working_copies(fresh)
    print("\n".join(filter(None, [f"Working copies, yours to change: {my_folder()}", advice()])),
          flush=True)
    os.environ.update(lab_environment())
    from jupyterlab.labapp import LabApp  # reads the variables while it is imported

    LabApp.launch_instance(lab_arguments(first, options))


# Executed notebooks as pages that need neither Jupyter nor a network, and run no script.

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
        """A formula on lines of its own."""
        return convert(body, display="block")

    def inline_math(self, body: str) -> str:
        """A formula within a line."""
        return convert(body)


def rendered(source: str) -> str:
    """Markdown as HTML, with `Formulas`."""
    return MarkdownWithMath(renderer=Formulas(escape=False)).render(source)


class PageExporter(HTMLExporter):
    """The page of nbconvert by our template, with `Formulas`."""

    def __init__(self) -> None:
        super().__init__(extra_loaders=[DictLoader({"page.html.j2": TEMPLATE})],
                         template_file="page.html.j2")

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        """A cell of text."""
        return rendered(source)


def render_pages(dataset: str, folder: Path) -> Path:
    """Write a page for every executed notebook of a data set, and the index, which is returned."""
    done = sorted(p for p in executed_folder(dataset).glob("*.ipynb")
                  if not p.name.endswith(".partial.ipynb"))
    if not done:
        raise ValueError(f"no executed notebooks in {executed_folder(dataset)}; "
                         "run: itr-study reproduce")
    target, names, entries = folder / dataset, [path.stem for path in done], []
    check_writable(target, "Name another folder for the pages: itr-study html --folder FOLDER")
    exporter = PageExporter()
    for path in progress(done, "pages"):
        notebook = nbformat.read(path, as_version=4)
        page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": path.stem}})
        write_atomic(target / f"{path.stem}.html", linked(page, path.stem, names).encode())
        entries.append(entry(path.stem, notebook))
    index = INDEX.format(dataset=escape(dataset), entries="\n".join(entries))
    write_atomic(target / "index.html", index.encode())
    return target / "index.html"


def entry(name: str, notebook: nbformat.NotebookNode) -> str:
    """What the index says of a page: its title, and its goal where the notebook names one."""
    text = next((c.source for c in notebook.cells if c.cell_type == "markdown"), "")
    title = text.splitlines()[0].lstrip("# ") if text else name
    goal = GOAL.search(text)
    about = BeautifulSoup(rendered(goal[1]), "html.parser").get_text() if goal else ""
    return f'<dt><a href="{name}.html">{escape(title)}</a></dt><dd>{escape(about)}</dd>'


def linked(page: str, name: str, names: Sequence[str]) -> str:
    """Add the way to other pages and the contents; links to what is not there become plain text."""
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


# What a Makefile's targets do where there is no make: the tests and benchmarks of the project.

FAST, SLOW = "not slow and not evidence", "slow and not evidence"  # by the markers of pytest
TIERS = {"fast": (FAST,), "all": (FAST, SLOW), "evidence": ("evidence",)}


def run_tests(paths: Sequence[str], tier: str = "fast") -> int:
    """Check the style and run a tier of the tests, or those of the paths in it; the exit code."""
    check_choice("tier", tier, TIERS)
    root = _source("tests")
    code = subprocess.call([sys.executable, "-m", "ruff", "check", "."], cwd=root)
    for marks in TIERS[tier]:
        code = code or subprocess.call(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", marks,
             *(paths or ["tests"])], cwd=root, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return code


def run_benchmarks(names: Sequence[str]) -> int:
    """Run each benchmark, or those named; `soak` only by name. The first exit code but 0."""
    folder = _source("benchmarks") / "benchmarks"
    scripts = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    for name in names:
        if name not in scripts:
            raise ValueError(f"no benchmark {name!r}; there are {', '.join(scripts)}")
    for name in names or [name for name in scripts if name != "soak"]:
        print(f"== {name}", flush=True)
        if code := subprocess.call([sys.executable, str(scripts[name])], cwd=project_root()):
            return code
    return 0


def _source(folder: str) -> Path:
    """The project's root. Raises: ValueError where it has no such folder."""
    if not (project_root() / folder).is_dir():
        raise ValueError(f"{project_root()} has no folder {folder}: start it in a copy of the "
                         "repository")
    return project_root()
