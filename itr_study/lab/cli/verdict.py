"""What `score`, `verdict` and `compare` print and write: text, a page, a card, LaTeX."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data.folder import TABLE
from itr_study.digits import lasting, number, signed, with_interval
from itr_study.evaluation.protocol import score
from itr_study.files.atomic import write_atomic
from itr_study.lab.batch.schedule import data_root
from itr_study.lab.cli.commands import metric_lines
from itr_study.lab.cli.sides import check_sides, metrics_of, read_array, read_ids, read_side
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.rivals import (
    LOWER,
    Runs,
    compared,
    headline,
    paired_seeds,
    seed_differences,
    sentence,
)
from itr_study.lab.runs.published import rows
from itr_study.lab.studies import compare as arms
from itr_study.lab.studies.bases import base_tables
from itr_study.metrics.intervals import student_interval

EVIDENCE = "flickr8k"  # whose published runs say what the seed alone changes
WORKERS = 2  # runs at a time
UNKNOWN = "unknown: nothing says whether the model has seen these texts or pictures"
METHOD = ("Runs are paired by seed. Brackets hold the 95 % Student-t interval of the mean "
          f"difference over seeds; it decides from {FEWEST} pairs on. Of several rivals, the share "
          "of false discoveries is held at 5 % for each metric. The interval over images says what "
          "other images would change, and decides nothing.")


class Report(NamedTuple):
    """A model, its rivals, their comparison, and in words: the answer, and what to know."""

    a: Runs
    rivals: list[Runs]
    table: pd.DataFrame
    answers: list[str]
    notes: list[str]
    metric: str

    @property
    def sides(self) -> list[Runs]:
        """The model, then its rivals."""
        return [self.a, *self.rivals]

    @property
    def text(self) -> str:
        """The answer first, then all differences, then what to know."""
        shown = shown_table(self.table).to_string(index=False)
        return "\n".join([*self.answers, "", shown, "", *(f"- {note}" for note in self.notes),
                          METHOD])


def score_report(scores: Path | None, ids: Path | None, relevance: Path | None,
                 images: Path | None, texts: Path | None, similarity: str | None) -> str:
    """Print every metric of a matrix, or of embeddings, below what its protocol is."""
    given = {name: read_array(path) for name, path in (
        ("scores", scores), ("relevance", relevance), ("images", images), ("texts", texts)) if path}
    if lists := [name for name, array in given.items() if not hasattr(array, "shape")]:
        raise ValueError(f"{lists[0]} must be one array in a .npy file, got a .npz file; save it "
                         "with numpy.save, or give --images and --texts")
    owner = read_ids(ids) if ids else None
    card = score(image_of_text=owner, similarity=similarity, **given)
    return "\n".join([*card.protocol, "", *metric_lines("coco", {"value": card.table})])


def judge_files(a: str, rivals: Sequence[str], ids: Path | None, relevance: Path | None,
                metric: str | None = None) -> Report:
    """Read all sides and compare them. Raises: ValueError: as `read_side` and `check_sides`."""
    if len({a, *rivals}) <= len(rivals):
        raise ValueError("a pattern is given twice; name each model once")
    owner = read_ids(ids) if ids else None
    graded = read_array(relevance) if relevance else None
    read = [read_side(pattern, owner, graded) for pattern in (a, *rivals)]
    sides, notes = [side for side, _ in read], [note for _, told in read for note in told]
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        sides = [Runs(pattern, *list(vars(side).values())[1:]) for pattern, side in zip(
            (a, *rivals), sides, strict=True)]
    return report(sides[0], sides[1:], [*dict.fromkeys([*notes, *check_sides(sides)])], metric)


def report(a: Runs, rivals: list[Runs], notes: list[str], metric: str | None = None) -> Report:
    """Compare a model with its rivals; metric: that decides, None: as `headline` chooses."""
    metrics = [name for name in metrics_of([a, *rivals]) if not name.endswith("medr")]  # in steps
    if metric is not None and metric not in metrics:
        raise ValueError(f"metric must be one of {', '.join(metrics)}; got {metric!r}")
    metric = metric or headline(metrics)
    table = compared(a, rivals, metrics)
    of_metric = list(table[table["metric"] == metric].itertuples())
    few = any(row.n < FEWEST for row in of_metric)
    differing = seed_differences(rows(EVIDENCE), f"test_{metric}") if few else None
    answers = [sentence(a.name, row, differing) for row in of_metric]
    return Report(a, rivals, table, [f"{answer}." for answer in answers], notes, metric)


def prepare(loss: str | None, rivals: Sequence[str], dataset: str | None, data: Path | None,
            base: str, quick: bool) -> tuple[arms.Setup, str, float | None]:
    """Set up a comparison; say what it trains, and estimate its hours (None: unknown).

    Raises: ValueError: as `own_objective`; a name twice; a folder of no known data set.
    """
    own = data is not None and any((data / part / TABLE).is_file() for part in ("", "folder"))
    if data is not None and dataset is None and not own:
        raise ValueError(f"{data} has no {TABLE} nor folder/{TABLE}: say which data set it holds, "
                         "such as --dataset flickr8k")
    dataset = dataset or ("folder" if own else "scenes")
    named = [arms.own_objective(name) for name in (
        *[loss] * (loss is not None), *(rivals or [name for name in arms.RIVALS if name != loss]))]
    if twice := [name for name, count in Counter(name for name, _ in named).items() if count > 1]:
        raise ValueError(f"two objectives are called {twice[0]}; name each once, and give another "
                         "loss another name")
    check_choice(f"base config of {dataset}", base, base_tables(dataset))
    setup = arms.set_up(dataset, base, quick, data_root(dataset, data), dict(named))
    missing, minutes = arms.minutes_left(setup)
    hours = None if minutes is None else minutes / 60 / WORKERS
    takes = "for an unknown time" if hours is None else f"for about {lasting(3600 * hours)}"
    return setup, (f"{', '.join(setup.objectives)} in {base} on {dataset}: {missing} runs to train "
                   f"{takes * bool(missing)}"), hours


def compare(setup: arms.Setup, device: str, loss: str | None, metric: str | None = None) -> Report:
    """Train what is missing, and judge the loss, or without one the best, against the others."""
    sides, notes = arms.trained(setup, device, WORKERS)
    deciding = metric or headline(metrics_of(sides))
    check_choice("metric", deciding, metrics_of(sides))
    sides = sorted(sides, key=lambda side: side.mean(deciding),
                   reverse=not deciding.endswith(LOWER))
    board = ", ".join(f"{side.name} {number(side.mean(deciding))}" for side in sides)
    notes = [f"board, {deciding}: {board}", *notes]
    if loss is None:
        first = sides[0]
        notes.append(f"{first.name} was picked for its mean, so its lead looks larger than it is")
    else:
        mine = next(iter(setup.objectives))
        first = next((side for side in sides if side.name == mine), None)
        if first is None:
            raise ValueError("; ".join(notes[1:]))
    found = report(first, [side for side in sides if side is not first], notes, metric)
    return found if loss else found._replace(answers=[f"Take {first.name}.", *found.answers])


def shown_table(table: pd.DataFrame) -> pd.DataFrame:
    """Write the numbers of a comparison for a reader."""
    images = [f"[{signed(low)}, {signed(high)}]" if np.isfinite(low) else "–"
              for low, high in zip(table["image_low"], table["image_high"], strict=True)]
    seeds = [with_interval(*row) if np.isfinite(row[1]) else signed(row[0])
             for row in zip(table["difference"], table["low"], table["high"], strict=True)]
    return pd.DataFrame({
        "metric": table["metric"], "against": table["rival"], "runs": table["n"],
        "this": table["a"].map(number), "other": table["b"].map(number), "difference": seeds,
        "over images": images, "q": table["q"].map("{:.3f}".format), "verdict": table["verdict"],
        "detectable": table["detectable"].map(lambda x: "–" if np.isnan(x) else f"±{number(x)}"),
        "pairs needed": table["needed"].map(lambda x: "–" if np.isnan(x) else f"{x:.0f}")})


def write_reports(found: Report, html: Path | None, card: Path | None, latex: Path | None,
                  figure: Path | None = None) -> list[str]:
    """Write what is asked for; each file whole or not at all. Returns the lines that say so."""
    made = {html: page, card: model_card, latex: latex_table}
    for path, make in made.items():
        if path is not None:
            write_atomic(path, make(found).encode())
    if figure is not None:
        save_picture(found, figure)
    return [f"written: {path}" for path in (*made, figure) if path is not None]


def save_picture(found: Report, path: Path) -> None:
    """Draw the differences into a file of the kind that its ending says, such as .svg or .pdf."""
    from io import BytesIO

    drawn = BytesIO()
    differences_picture(found).savefig(drawn, format=path.suffix.lstrip(".") or "png")
    write_atomic(path, drawn.getvalue())


def differences_picture(found: Report) -> Any:
    """Draw all differences with their intervals over seeds, a group for each rival."""
    from itr_study.plots.claims import dot_intervals
    from itr_study.plots.tables import title_of

    table = found.table[~found.table["metric"].str.endswith(LOWER)]
    sides = {"better": "higher", "worse": "lower"}
    return dot_intervals(table.assign(
        label=[title_of(f"test_{metric}") if "_" in metric or metric == "rsum" else metric
               for metric in table["metric"]], group=f"{found.a.name} − " + table["rival"],
        verdict=table["verdict"].replace(sides | {"not settled": "undecided"})),
        f"What {found.a.name} has more\nright of zero it is better", note="95 % over seeds")


def runs_picture(found: Report) -> Any:
    """Draw the metric that decides for every run; a line joins the runs of one seed."""
    from itr_study.plots.style import GREY, INK, canvas, finish, styled

    @styled
    def draw() -> Any:
        figure, (axes,) = canvas(size=(max(4.8, 1.6 * len(found.sides)), 3.2))
        tables = [[side.tables[seed] for seed in (
            paired_seeds(found.a, side) if len(side.tables) > 1 else side.tables)]
            for side in found.sides]
        for place, runs in enumerate(zip(*tables, strict=True)):
            values = [run[found.metric] for run in runs]
            axes.plot(range(len(values)), values, "o-", color=GREY, linewidth=0.8,
                      label="one seed" if place == 0 else None)
        axes.plot(range(len(tables)), [side.mean(found.metric) for side in found.sides], "_",
                  color=INK, markersize=24, label="mean")
        axes.set_xticks(range(len(tables)), [side.name for side in found.sides])
        axes.set(ylabel=found.metric, xlim=(-0.5, len(tables) - 0.5))
        axes.legend()
        return finish(figure, f"{found.metric} of every run")
    return draw()


def page(found: Report) -> str:
    """Write a page that needs no network: the answer, two pictures, all differences, the method."""
    from itr_study.plots.style import png_bytes

    pictures = "".join(
        f'<p><img alt="{escape(alt)}" src="data:image/png;base64,'
        f'{b64encode(png_bytes(picture)).decode()}"></p>' for alt, picture in (
            ("differences with their intervals", differences_picture(found)),
            ("every run", runs_picture(found))))
    body = "".join(f"<p><b>{escape(answer)}</b></p>" for answer in found.answers) + pictures
    body += shown_table(found.table).to_html(index=False, border=0)
    body += "".join(f"<p>{escape(note)}</p>" for note in (*found.notes, METHOD))
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
            f"{escape(found.a.name)}</title><style>body {{ max-width: 60em; margin: 2em auto; "
            "padding: 0 1em; font-family: sans-serif } img { max-width: 100% } table { font-size: "
            "90%; border-spacing: 0.8em 0.2em; display: block; overflow-x: auto } th { text-align: "
            f"left }}</style></head><body><h1>{escape(found.a.name)}</h1>{body}</body></html>\n")


def model_card(found: Report) -> str:
    """Write a README.md whose head has the means with their intervals as a `model-index`."""
    metrics = []
    for name in metrics_of([found.a]):
        values = [table[name] for table in found.a.tables.values()]
        low, high = student_interval(values)
        spread = {"low_95": round(low, 3), "high_95": round(high, 3)} if len(values) > 1 else {}
        metrics.append({"type": name, "value": round(float(np.mean(values)), 3),
                        "args": {"runs": len(values)} | spread})
    index = [{"name": found.a.name, "results": [{
        "task": {"type": "image-text-retrieval"},
        "dataset": {"name": "see below", "type": "image-text-retrieval"}, "metrics": metrics}]}]
    lines = [f"# {found.a.name}", "", *found.answers, "",
             f"Contamination: {found.a.seen or UNKNOWN}.", "",
             *(f"- {note}" for note in found.notes), "", METHOD, ""]
    return f"---\nmodel-index: {json.dumps(index, indent=1)}\n---\n\n" + "\n".join(lines)


def latex_table(found: Report) -> str:
    """Write a booktabs table of means; bold only where a difference is settled."""
    metrics = [name for name in metrics_of(found.sides) if not name.endswith(LOWER)]
    means = pd.DataFrame({name: {side.name: side.mean(name) for side in found.sides}
                          for name in metrics})
    verdicts = found.table.pivot(index="rival", columns="metric", values="verdict")
    bold = pd.DataFrame("", means.index, means.columns)
    for name in metrics:
        if (verdicts[name] == "better").all():
            bold.loc[found.a.name, name] = "textbf:--rwrap;"
        bold.loc[verdicts.index[verdicts[name] == "worse"], name] = "textbf:--rwrap;"
    styled = means.style.format(precision=1).apply(lambda _: bold, axis=None)
    text = styled.format_index(escape="latex").format_index(escape="latex", axis=1).to_latex(
        hrules=True, column_format="l" + "r" * len(metrics))
    return (f"% needs \\usepackage{{booktabs}}. Means over runs. Bold: {found.a.name} where it is "
            "settled better than every\n% rival, a rival where it is settled better than "
            f"{found.a.name}.\n{text}")
