"""Lay the pages of the site into a folder, and have Sphinx make HTML of them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

import itr_study as itr
from itr_study.explorers.widget import STATIC, read_module
from itr_study.files.paths import evidence_folder, figures_folder, project_root
from itr_study.lab.batch.schedule import executed_folder
from itr_study.lab.course import CHECK, LARGEST, SENTENCES, Exercise, exercises
from tools.site.docstrings import read_equations

HERE = Path(__file__).parent
DRAWINGS = ("push_pull", "who_moved", "judge", "search")  # of the widgets
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
DOCS = ("course", "ways-in", "your-own-loss-or-model", "verdict", "your-own-data", "real-data",
        "fine-tuning", "commands", "windows-macos-gpu", "scale", "statistics", "evidence",
        "findings", "misprints", "glossary")
# Pages of the API: a title, and what is on it, of registries and of names.
API: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "losses": ("Losses", ("LOSSES", "OUTPUT_LOSSES"), ("itr_study.losses.base.RankingLoss",
                                                       "itr_study.losses.check.check_loss")),
    "models": ("Models", ("MODELS",), ("itr_study.models.base.ModelOutput",)),
    "data": ("Data and features", ("DATASETS", "IMAGE_ENCODERS", "TEXT_ENCODERS"), (
        "itr_study.data.load_dataset", "itr_study.features.dataset.encode_dataset")),
    "relevance": ("Sources of relevance", ("RELEVANCE",), ()),
    "metrics": ("Metrics", (), tuple(f"itr_study.metrics.{name}" for name in itr.metrics.__all__)),
    "rerankers": ("Re-ranking", ("RERANKERS",), ()),
    "training": ("Training and evaluation", (), (
        "itr_study.training.objective.Objective", "itr_study.training.objective.Term",
        "itr_study.training.settings.Settings", "itr_study.training.loop.fit",
        "itr_study.evaluation.evaluate.evaluate", "itr_study.evaluation.search.Searcher",
        "itr_study.evaluation.table.retrieval_table", "itr_study.evaluation.protocol.score")),
    "adapters": ("In the training of others", (), tuple(f"itr_study.adapters.{name}" for name in (
        "contrastive", "RankingLoss", "captions", "ImageTextEvaluator"))),
}


MARK = Path("_static", "live", "front.js")  # a folder that has it is a site


def build(dataset: str, target: Path, work: Path,
          live: Callable[[], dict[str, dict[str, str]]]) -> Path:
    """Make the site.

    Args:
        dataset: whose executed notebooks are taken.
        target: the folder of the site, replaced.
        work: a folder for its sources, replaced.
        live: gives the live page its scripts and stills, as `record.live`.
    Returns: the first page.
    Raises: ValueError: the target holds anything else, or Sphinx could not build.
    """
    check_replaceable(target)
    shutil.rmtree(work, ignore_errors=True)
    (work / "_static" / "live").mkdir(parents=True)
    lay_documents(work)
    lay_lessons(work, dataset)
    lay_figures(work)
    lay_api(work)
    write(work / "equations.md", equations_page(project_root()))
    write(work / "ledger.md", ledger_page(evidence_folder() / "claims.json"))
    lay_scripts(work / "_static")
    sphinx = start_sphinx(work, target)
    try:
        made = live()  # while Sphinx works
    finally:
        _, said = sphinx.communicate()
    if sphinx.returncode:
        raise ValueError(f"Sphinx could not build the site:\n{said[-3000:]}")
    print(said, end="")
    add_live(target, made)
    from tools.site.slides import lay_slides  # only the site needs its packages

    lay_slides(target, dataset)
    return target / "index.html"


def write(path: Path, text: str) -> None:
    """Write a text file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def toctree(title: str, pages: Sequence[str], hidden: bool = True) -> str:
    """Write a list of pages."""
    options = [f":caption: {title}"] * bool(title) + [":hidden:"] * hidden + [":maxdepth: 1"]
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])


def lay_documents(work: Path) -> None:
    """Lay README, as the first page, CONTRIBUTING and docs/."""
    root = project_root()
    readme = (root / "README.md").read_text(encoding="utf-8")
    lessons = [path.stem for path in sorted((root / "notebooks").glob("*.ipynb"))]
    start = readme.index("## Start")
    live = "**[Drag the scores of a list](play.md)**: every loss shows where it pushes them.\n\n"
    trees = [toctree("Try", ["play"]),
             toctree("Lessons", [f"notebooks/{name}" for name in lessons]),
             toctree("Guides", [f"docs/{name}" for name in DOCS]),
             toctree("Reference", ["api/index", "equations", "ledger", "figures/README",
                                   "figures/flickr8k/claims", "CONTRIBUTING"])]
    write(work / "index.md", linked(readme[:start] + live + readme[start:], "", work)
          + "\n" + "\n".join(trees))
    write(work / "play.md", (HERE / "play.md").read_text(encoding="utf-8"))
    for path in (root / "CONTRIBUTING.md", *(root / "docs" / f"{name}.md" for name in DOCS)):
        folder = path.parent.relative_to(root).as_posix().removeprefix(".")
        write(work / path.relative_to(root), linked(path.read_text(encoding="utf-8"), folder, work))


def linked(text: str, folder: str, work: Path) -> str:
    """Turn links to what is not in the site into plain text; `folder` is that of the text."""
    pages = ("README.md", "CONTRIBUTING.md", "figures/README.md", "figures/flickr8k/claims.md",
             "play.md", *(f"docs/{name}.md" for name in DOCS))

    def replaced(found: re.Match) -> str:
        picture, words, target = found.groups()
        address, _, anchor = target.partition("#")
        if picture or not address or "://" in address:
            return found[0]
        at = os.path.normpath(os.path.join(folder, address)).replace(os.sep, "/")
        lesson = at.startswith("notebooks/") and at.count("/") == 1
        if lesson and not (project_root() / at).is_file():
            print(f"{at} is not there; links to it are plain text")
            lesson = False
        if not lesson and at not in pages:
            return words
        at = "index.md" if at == "README.md" else at
        there = os.path.relpath(at, folder or ".").replace(os.sep, "/")
        return f"{picture}[{words}]({there}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(replaced, text)


def lay_lessons(work: Path, dataset: str) -> None:
    """Lay the notebooks, executed where a batch has left them; say on each what it is."""
    source = project_root() / "notebooks"
    for path in sorted(source.glob("*.ipynb")):
        notebook, said = read_lesson(path, executed_folder(dataset) / path.name, dataset)
        said += (" [Drag the scores yourself](../play.md). "
                 f'<a href="../slides/{path.stem}.html">Slides</a>.')
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                cell.source = linked(cell.source, "notebooks", work)
                if place == 0:
                    head, _, rest = cell.source.partition("\n")
                    cell.source = f"{head}\n\n{said}\n{rest}"
            elif found := CHECK.findall(cell.source):
                notebook.cells[place] = new_markdown_cell(check_field(exercises()[found[0][0]]))
            else:
                describe_pictures(cell)
        notebook.cells.append(new_markdown_cell(
            raw_html('<script src="../_static/check.js"></script>')))
        target = work / "notebooks" / path.name
        target.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, target)


def read_lesson(path: Path, done: Path, dataset: str) -> tuple[nbformat.NotebookNode, str]:
    """Read a notebook, executed if it can be read so, and say what it is."""
    if done.is_file():
        try:
            return nbformat.read(done, as_version=4), f"Run on *{dataset}*."
        except (ValueError, nbformat.reader.NotJSONError) as error:
            print(f"{done} cannot be read ({type(error).__name__}): the page has no results. "
                  f"Run it again: itr-study reproduce {path.stem} --dataset {dataset}")
    said = "Without results, for it was not run before this page was made."
    return nbformat.read(path, as_version=4), said


def raw_html(text: str) -> str:
    """Write HTML in Markdown."""
    return f"```{{raw}} html\n{text}\n```"


def check_field(one: Exercise) -> str:
    """Write the place where check.js checks a guess, with what it must know of the exercise."""
    asks = f"{', '.join(one.choices[:-1])} or {one.choices[-1]}" if one.choices else one.unit
    words = dict(name=one.name, wanted=one.wanted, hint=one.hint, got="{got}")
    told = {"name": one.name, "label": f"Your guess ({asks})", "width": one.width,
            "choices": one.choices, "digests": one.digests, "largest": LARGEST,
            "sentences": {said: text.format(**words) for said, text in SENTENCES.items()}}
    return raw_html(
        f'<div class="itr-check" data-exercise="{escape(json.dumps(told))}">Your guess can be '
        "checked here with JavaScript, or in the notebook.</div>")


def describe_pictures(cell: nbformat.NotebookNode) -> None:
    """Fold the parameters, and give the picture of a cell its alternative text."""
    if {"parameters", "injected-parameters"} & set(cell.metadata.get("tags", ())):
        cell.metadata["tags"] = [*cell.metadata["tags"], "hide-input"]
    said = [output.metadata.get("image/png", {}).get("alt") for output in cell.outputs
            if "metadata" in output]
    if alternative := next(filter(None, said), ""):
        cell.metadata["mystnb"] = {"image": {"alt": alternative}}


def lay_figures(work: Path) -> None:
    """Lay the gallery and its pictures; of tables and provenance the names remain."""
    root = figures_folder()
    for path in [root / "README.md", root / "flickr8k" / "claims.md",
                 *root.glob("*/*.png")]:
        place = work / "figures" / path.relative_to(root)
        if path.parent.name == "scenes" or not path.is_file():
            continue
        if path.suffix == ".png":
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        else:
            text = linked(path.read_text(encoding="utf-8"),
                          path.parent.relative_to(root.parent).as_posix(), work)
            title = "" if text.startswith("# ") else "# Claims, with every number\n\n"
            write(place, title + text)


def lay_api(work: Path) -> None:
    """Write a page for each part of the API."""
    for page, (title, registries, names) in API.items():
        blocks = [f"# {title}", ""]
        for registry in registries:
            blocks += [f"## {registry}", ""] if len(registries) > 1 else []
            for name, part in getattr(itr, registry).items():
                part = part if hasattr(part, "__qualname__") else part.load  # of a data set
                blocks += documented(f"{part.__module__}.{part.__qualname__}", f"`{name}`")
        blocks += [line for name in names for line in documented(name)]
        write(work / "api" / f"{page}.md", "\n".join(blocks))
    index = ["# API", "", "```python", "import itr_study as itr", "```", "",
             "Written from the docstrings. `itr.LOSSES[\"topk\"]` gives a class by its name.", ""]
    write(work / "api" / "index.md", "\n".join([*index, toctree("", [*API], hidden=False)]))


def documented(name: str, heading: str = "") -> list[str]:
    """Write the heading of a class or function, and what Sphinx reads of it."""
    module, _, own = name.rpartition(".")
    part = vars(sys.modules.get(module) or __import__(module, fromlist=["_"]))[own]
    if not isinstance(part, type) and not callable(part):
        return [f"## {own}", "", f"`{part!r}`"[:300], ""]
    kind = "autoclass" if isinstance(part, type) else "autofunction"
    return [f"## {heading or own}", "", "```{eval-rst}", f".. {kind}:: {name}", "```", ""]


def equations_page(root: Path) -> str:
    """Write the index of equations: paper, formula as the code says it, arguments, code."""
    where = {}
    for page, (_, registries, names) in API.items():
        parts = [part for registry in registries for part in getattr(itr, registry).values()]
        where |= {getattr(part, "__qualname__", ""): page for part in parts}
        where |= {name.rpartition(".")[2]: page for name in names}
    blocks = ["# Equations", "",
              "Which equation of which paper is which code. Formulas and arguments are those of "
              "the docstrings; [the glossary](docs/glossary.md#symbols) lists letters that the "
              "papers use for several things; [some are misprinted](docs/misprints.md).", ""]
    paper = ""
    for one in read_equations(root):
        if one.paper != paper:
            paper = one.paper
            blocks += [f"## {paper}", ""]
        page = where.get(one.name)
        full = f"{one.module}.{one.name}"
        code = f"[`{full}`](api/{page}.md)" if page else f"`{full}`"
        blocks += [f"### {one.place}: {one.name}", "", f"Code: {code}", ""]
        blocks += ["```text", one.formula, "```", ""] if one.formula else []
        blocks += ["| argument | what it is, and its letter in the paper |", "|---|---|",
                   *(f"| `{name}` | {cell(what)} |" for name, what in one.symbols if name), ""] \
            if one.symbols else []
        blocks += [f"Differs: {plain(one.differs)}", ""] if one.differs else []
    return "\n".join(blocks)


def plain(text: str) -> str:
    """Write a text in Markdown as it is."""
    return re.sub(r"([\\*_<>\[\]$])", r"\\\1", text)


def cell(text: str) -> str:
    """Write a text in a cell of a table."""
    return plain(" ".join(text.split())).replace("|", "\\|")


COLUMNS = ("claim", "paper", "statement", "outcome", "interval", "metric", "place", "verdict")


def ledger_page(path: Path) -> str:
    """Write the ledger as a table, whole without JavaScript; ledger.js sorts and filters it."""
    records = json.loads(path.read_text(encoding="utf-8"))
    rows = [dict(record["claim"], claim=name, interval=record["interval"] or "–",
                 outcome=record["outcome"], verdict=record["verdict"])
            for name, record in records.items()]
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(str(row[name]))}</td>" for name in COLUMNS)
                     + "</tr>" for row in rows)
    return "\n".join([
        "# Claims of the papers", "",
        f"All {len(rows)} claims, ours among them that check theirs: what the runs measured "
        "(difference with its interval) and the verdict. "
        "[How a verdict is found](docs/statistics.md).", "",
        "```{raw} html", '<div class="ledger"><div class="ledger-tools"></div>',
        f'<div class="ledger-scroll" tabindex="0" role="region" aria-label="Claims">'
        f"<table><thead><tr>{head}</tr></thead>",
        f"<tbody>\n{body}\n</tbody></table></div></div>",
        '<script src="_static/ledger.js"></script>', "```", ""])


def lay_scripts(static: Path) -> None:
    """Lay styles and scripts.

    The modules of the widgets become one script: a browser loads no module without a server.
    """
    shutil.copyfile(HERE / "conf.py", static.parent / "conf.py")
    for path in (HERE / "static").iterdir():
        shutil.copyfile(path, static / path.name)
    styles = (STATIC / "shell.css", HERE / "static" / "site.css")
    write(static / "site.css", "\n".join(path.read_text(encoding="utf-8") for path in styles))
    write(static / "live" / "front.js", "".join(front_end()))
    shutil.copyfile(str(files("sphinx-mathjax-offline") / "static/mathjax/tex-svg-full.js"),
                    static / "tex-svg-full.js")


def front_end() -> Iterator[str]:
    """Yield the shell with each drawing, as the widgets have it."""
    yield "const ITR_FRONT = {};\n"
    own = (HERE / "static" / "learning.js").read_text(encoding="utf-8")
    shell = (STATIC / "shell.js").read_text(encoding="utf-8")
    for drawing, module in [*((name, read_module(name)) for name in DRAWINGS),
                            ("learning", f"{shell}\n{own}")]:
        module = module.replace("export default { render };", "")
        yield f"ITR_FRONT.{drawing} = (() => {{\n{module}\nreturn {{ render }};\n}})();\n"


def check_replaceable(target: Path) -> None:
    """Refuse a folder that holds anything but a site: it will be replaced.

    Raises: ValueError: it does.
    """
    if target.exists() and not (target / MARK).is_file() and (
            not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} holds other files, and the site replaces its folder: remove "
                         "it, or name an empty one with --folder FOLDER")


def start_sphinx(work: Path, target: Path) -> subprocess.Popen[str]:
    """Let Sphinx make the pages."""
    shutil.rmtree(target, ignore_errors=True)
    return subprocess.Popen(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-j", "auto",
         "-d", str(work.parent / f"{work.name}-trees"), str(work), str(target)],
        cwd=project_root(), env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(
            None, (str(project_root()), os.environ.get("PYTHONPATH"))))},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def add_live(target: Path, made: dict[str, dict[str, str]]) -> None:
    """Add what was recorded, and remove what only another build of Sphinx would read."""
    for name, text in made["scripts"].items():
        write(target / "_static" / "live" / name, text)
    page = (target / "play.html").read_text(encoding="utf-8")
    for name, still in made["stills"].items():
        page = page.replace(f"PICTURE:{name}", still)
    write(target / "play.html", page)
    for name in (".buildinfo", "objects.inv"):
        (target / name).unlink(missing_ok=True)
