"""What `score`, `verdict` and `compare` print and write: text, a page, a card, LaTeX."""

import json
import sys
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data.folder import TABLE
from itr_study.digits import counted, lasting, number, signed, with_interval
from itr_study.evaluation.protocol import score
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import check_writable
from itr_study.lab.cli.sides import check_sides, metrics_of, read_array, read_ids, read_side
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.rivals import (
    LEAST,
    LOWER,
    NO_EFFECT,
    OPEN,
    Runs,
    compared,
    headline,
    seed_differences,
    sentence,
)
from itr_study.lab.runs.published import rows
from itr_study.metrics.intervals import student_interval

if TYPE_CHECKING:  # what trains is loaded where it is needed
    from itr_study.lab.studies import compare as arms

EVIDENCE = "flickr8k"  # whose published runs say what the seed alone changes
WORKERS = 2  # runs at a time
DRAWN = (".svg", ".pdf", ".png")
UNKNOWN = "unknown: nothing says whether the model has seen these texts or pictures"
METHOD = ("Runs are paired by seed. Brackets hold the Student-t interval of the mean difference "
          "over seeds, at 95 % or what --looks makes of it. From "
          f"{FEWEST} pairs on it decides, if it is more than {LEAST} points from zero (mean ranks: "
          "on one side). Of several rivals, the share of false discoveries is held at 5 % for each "
          "metric. The interval over images says what other images would change; it decides "
          "nothing.")


class Report(NamedTuple):
    """A model, its rivals, their comparison, and in words: the answer, and what to know."""

    a: Runs
    sides: list[Runs]  # the model, then its rivals
    table: pd.DataFrame
    answers: list[str]
    notes: list[str]
    metric: str
    title: str = ""  # of several: what was compared where


def score_report(scores: Path | None, ids: Path | None, relevance: Path | None,
                 images: Path | None, texts: Path | None, similarity: str | None) -> str:
    """Print every metric of a matrix, or of embeddings, below what its protocol is."""
    from itr_study.lab.cli.commands import metric_lines

    given = {name: read_array(path) for name, path in (
        ("scores", scores), ("relevance", relevance), ("images", images), ("texts", texts)) if path}
    if lists := [name for name, array in given.items() if not hasattr(array, "shape")]:
        raise ValueError(f"{lists[0]} must be one array in a .npy file, got a .npz file; save it "
                         "with numpy.save, or give --images and --texts")
    if similarity and scores:
        raise ValueError("--similarity goes with --images and --texts, not with scores")
    owner = read_ids(ids) if ids else None
    card = score(image_of_text=owner, similarity=similarity, **given)
    return "\n".join([*card.protocol, "", *metric_lines("coco", {"value": card.table})])


def judge_files(a: str, rivals: Sequence[str], ids: Path | None, relevance: Path | None,
                metric: str | None = None, looks: int = 1) -> Report:
    """Read all sides and compare them. Raises: ValueError: as `read_side` and `check_sides`."""
    if len({a, *rivals}) <= len(rivals):
        raise ValueError("a pattern is given twice; name each model once")
    owner = read_ids(ids) if ids else None
    graded = read_array(relevance) if relevance else None
    read = [read_side(pattern, owner, graded) for pattern in (a, *rivals)]
    sides, notes = [side for side, _ in read], [note for _, told in read for note in told]
    if len({side.name for side in sides}) < len(sides):
        sides = [replace(side, name=name) for side, name in zip(sides, (a, *rivals), strict=True)]
    return report(sides, [*dict.fromkeys([*notes, *check_sides(sides)])], metric, looks)


def report(sides: list[Runs], notes: list[str], metric: str | None = None,
           looks: int = 1) -> Report:
    """Compare a model with its rivals; metric: that decides, None: as `headline` chooses."""
    metrics = [name for name in metrics_of(sides) if not name.endswith("medr")]  # in steps
    metric = metric or headline(metrics)
    check_choice("metric", metric, metrics)
    table = compared(sides[0], sides[1:], metrics, looks)
    of_metric = list(table[table["metric"] == metric].itertuples())
    few = any(row.n < FEWEST for row in of_metric)
    differing = seed_differences(rows(EVIDENCE), f"test_{metric}") if few else None
    answers = [f"{sentence(sides[0].name, row, differing)}." for row in of_metric]
    return Report(sides[0], sides, table, answers, notes, metric)


def prepare(own: str | None, rivals: Sequence[str], dataset: str | None, data: Path | None,
            bases: Sequence[str], quick: bool, metric: str | None = None,
            options: Mapping[str, Any] | None = None) -> tuple[list["arms.Setup"], str, float]:
    """Set up a comparison; say what it trains, and estimate its hours (NaN: unknown).

    Raises: ValueError: as `read_variants` and `set_up`; a folder of no known data set.
    """
    from itr_study.lab.batch.schedule import data_root
    from itr_study.lab.studies import compare as arms

    if data is not None and dataset is None and not any(
            (data / part / TABLE).is_file() for part in ("", "folder")):
        raise ValueError(f"there is no {TABLE} in {data} or {data}/folder: name the folder of your "
                         "pictures, or say which data set it holds, such as --dataset flickr8k")
    dataset = dataset or ("scenes" if data is None else "folder")
    typed = [*filter(None, [own]), *rivals]
    variants, spare = arms.read_variants(typed), []
    if not rivals and all("objective" in changes for changes in variants.values()):
        spare = [n for n in arms.RIVALS if arms.read_variant(n)[1] not in variants.values()]
        variants = arms.read_variants(typed + spare)
    setups = [arms.set_up(dataset, base, quick, data_root(dataset, data), variants, options, spare)
              for base in dict.fromkeys(bases)]
    if metric is not None:
        check_choice("metric", metric, arms.metrics_in(setups[0]))
    missing, minutes = arms.minutes_left(setups)
    hours = minutes / 60 / WORKERS
    takes = "an unknown time" if np.isnan(hours) else f"about {lasting(3600 * hours)}"
    plan = "; ".join(f"{', '.join(setup.variants)} in {setup.base}" for setup in setups)
    return setups, "\n".join([*(f"note: {note}" for note in dict.fromkeys(setups[0].notes)), (
        f"{plan} on {dataset}: {counted(missing, 'run')} to train"
        f"{f' for {takes}' * bool(missing)}")]), hours


def compare(setups: Sequence["arms.Setup"], device: str, own: bool,
            metric: str | None = None) -> list[Report]:
    """Train what is missing; in each base config judge the first, or without one the best."""
    from itr_study.lab.studies import compare as arms

    start, (planned, _), found = time.monotonic(), arms.minutes_left(setups), []

    def begin(name: str) -> None:
        missing, minutes = arms.minutes_left(setups)
        ran, gone = planned - missing, time.monotonic() - start
        seconds = missing * gone / ran if ran else 60 * minutes / WORKERS
        if seconds > 0:
            print(f"{name}, then others: {counted(missing, 'run')}, about {lasting(seconds)} left",
                  file=sys.stderr)

    for setup in setups:
        ours = next(iter(setup.variants)) if own else ""
        sides, notes = arms.trained(setup, device, WORKERS, ours, begin)
        deciding = metric or headline(metrics_of(sides))
        check_choice("metric", deciding, metrics_of(sides))
        sides.sort(key=lambda side: side.mean(deciding), reverse=not deciding.endswith(LOWER))
        board = ", ".join(f"{side.name} {number(side.mean(deciding))}" for side in sides)
        best = sides[0].name
        sides.sort(key=lambda side: side.name != ours)  # ours first, the others stay in order
        judged = report(sides, [f"board, {deciding}: {board}", *notes, *(
            [] if own else [f"{best} was picked for its mean, so its lead looks larger than it is"]
        )], metric)
        found.append(judged._replace(title=f"{setup.base} on {setup.start.dataset}",
                                     answers=[f"Take {best}."] * (not own) + judged.answers))
    return found


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


def check_outputs(html: Path | None, card: Path | None, latex: Path | None,
                  figures: Sequence[Path]) -> None:
    """Refuse, before anything is measured or trained, files that could not be written."""
    for path in filter(None, (html, card, latex, *figures)):
        check_writable(path.absolute().parent, "Name a file in a folder that you may write")
        if path.is_dir():
            raise ValueError(f"{path} is a folder: name a file in it")
        if path in figures and path.suffix.lower() not in DRAWN:
            raise ValueError(f"--figure takes a file of {', '.join(DRAWN)}, got {path}")


def written(found: Sequence[Report], html: Path | None, card: Path | None, latex: Path | None,
            figures: Sequence[Path]) -> str:
    """Write what is asked for, each file whole or not at all.

    Returns: of each report the answer first, then all differences, what to know, what was written.
    """
    made = {html: page, card: model_card, latex: lambda found: "\n".join(map(latex_table, found))}
    for path, make in made.items():
        if path is not None:
            write_atomic(path, make(found).encode())
    for path in figures:
        drawn = BytesIO()
        differences_picture(found).savefig(drawn, format=path.suffix.lower().lstrip("."))
        write_atomic(path, drawn.getvalue())
    parts = [[*[f"In {one.title}:", ""] * (len(found) > 1), *one.answers, "",
              shown_table(one.table).to_string(index=False), "",
              *(f"- {note}" for note in one.notes), ""] for one in found]
    return "\n".join([*sum(parts, []), METHOD, *(
        f"written: {path}" for path in (*made, *figures) if path is not None)])


def differences_picture(found: Sequence[Report]) -> Any:
    """Draw all differences with their intervals over seeds, a group for each rival."""
    from itr_study.plots.claims import dot_intervals
    from itr_study.plots.tables import title_of

    table = pd.concat([one.table.assign(
        group=f"{one.a.name} − " + one.table["rival"] + f", {one.title}" * (len(found) > 1))
        for one in found])
    table = table[~table["metric"].str.endswith(LOWER)]
    sides = {"better": "higher", "worse": "lower", NO_EFFECT: "same", OPEN: "undecided"}
    return dot_intervals(table.assign(
        label=[title_of(f"test_{metric}") if "_" in metric or metric == "rsum" else metric
               for metric in table["metric"]], verdict=table["verdict"].replace(sides)),
        "Difference to each rival\nright of zero is better",
        note=f"{100 * table['level'].max():.4g} % over seeds")


def runs_picture(found: Report) -> Any:
    """Draw the metric that decides for every run; a line joins the runs of one seed."""
    from itr_study.plots.style import GREY, INK, canvas, finish, styled

    @styled
    def draw() -> Any:
        figure, (axes,) = canvas(size=(max(4.8, 1.6 * len(found.sides)), 3.2))
        names = [side.name for side in found.sides]
        values = np.array([[side.tables[seed][found.metric] for seed in sorted(side.tables)]
                           for side in found.sides])
        axes.plot(names, values, "o-", color=GREY, linewidth=0.8)[0].set_label("one seed")
        axes.plot(names, values.mean(axis=1), "_", color=INK, markersize=24, label="mean")
        axes.set(ylabel=found.metric, xlim=(-0.5, len(names) - 0.5))
        axes.legend()
        return finish(figure, f"{found.metric} of every run")
    return draw()


def page(found: Sequence[Report]) -> str:
    """Write a page that needs no network: the answer, two pictures, all differences, the method."""
    from itr_study.plots.style import png_bytes

    body = ""
    for one in found:
        pictures = {"differences with their intervals": differences_picture([one]),
                    "every run": runs_picture(one)}
        body += f"<h2>{escape(one.title)}</h2>" * (len(found) > 1)
        body += "".join(f"<p><b>{escape(answer)}</b></p>" for answer in one.answers)
        body += "".join(f'<p><img alt="{alt}" src="data:image/png;base64,'
                        f'{b64encode(png_bytes(picture)).decode()}"></p>'
                        for alt, picture in pictures.items())
        body += shown_table(one.table).to_html(index=False, border=0)
        body += "".join(f"<p>{escape(note)}</p>" for note in one.notes)
    name = escape(", ".join(dict.fromkeys(one.a.name for one in found)))
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
            f"{name}</title><style>body {{ max-width: 70em; margin: 2em auto; padding: 0 1em; "
            "font-family: sans-serif } img { max-width: 100% } table { font-size: 90%; "
            "border-spacing: 0.8em 0.2em; display: block; overflow-x: auto; white-space: nowrap } "
            f"th {{ text-align: left }}</style></head><body><h1>{name}</h1>{body}<p>{METHOD}</p>"
            "</body></html>\n")


def model_card(found: Sequence[Report]) -> str:
    """Write a README.md whose head has the means with their intervals as a `model-index`."""
    names = list(dict.fromkeys(one.a.name for one in found))
    index = {name: {"name": name, "results": []} for name in names}
    lines = [f"# {', '.join(names)}", ""]
    for one in found:
        metrics = []
        for name in metrics_of([one.a]):
            values = [table[name] for table in one.a.tables.values()]
            low, high = student_interval(values)
            spread = {"low_95": round(low, 3), "high_95": round(high, 3)} if len(values) > 1 else {}
            metrics.append({"type": name, "value": round(float(np.mean(values)), 3),
                            "args": {"runs": len(values)} | spread})
        index[one.a.name]["results"].append({"task": {"type": "image-text-retrieval"}, "dataset": {
            "name": one.title or "see below", "type": "image-text-retrieval"}, "metrics": metrics})
        lines += [f"## {one.title}", ""] * (len(found) > 1) + [
            *one.answers, "", f"Contamination: {one.a.seen or UNKNOWN}.", "",
            *(f"- {note}" for note in one.notes), ""]
    return (f"---\nmodel-index: {json.dumps(list(index.values()), indent=1)}\n---\n\n"
            + "\n".join([*lines, METHOD, ""]))


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
    return (f"% {found.title}\n" * bool(found.title) + "% needs \\usepackage{booktabs}. Means over "
            f"runs. Bold: {found.a.name} where it is settled better than every\n% rival, a rival "
            f"where it is settled better than {found.a.name}.\n{text}")
