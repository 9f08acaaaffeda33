"""Save figures as PNG, CSV and provenance, unless worse, and list them on pages."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study import __version__
from itr_study.data import DATASETS
from itr_study.digits import counted
from itr_study.files.atomic import write_atomic, write_json
from itr_study.files.paths import FIGURES_REMEDY, check_writable, figures_folder, shipped_folder
from itr_study.plots import style
from itr_study.plots.published import read_record, table_difference, tolerance_of
from itr_study.plots.style import png_bytes

PROFILES = ("smoke", "quick", "paper", "full")  # from least to fullest
COMMON = "common"  # in the place of a data set: figures that no data set, profile or run changes
NAME = re.compile(r"(\d\d_[a-z0-9_]+?)__([a-z0-9_]+)")
MACHINE_KEYS = {"time", "timestamp", "date", "host", "hostname", "user", "cwd", "path"}
MACHINE_PATH = re.compile(r"^(/|~|[A-Za-z]:[\\/])")


def save_figure(figure: Figure | None, table: pd.DataFrame, name: str, dataset: str, summary: str,
                provenance: Mapping[str, Any], folder: Path | str | None = None,
                published: bool = False) -> Path:
    """Write a figure with its table and provenance: same data, same bytes.

    A figure made with more seeds or a fuller profile is never replaced: the new one then goes to
    `figures-local/` next to the folder, and a line is printed.

    Args:
        figure: None for a table alone (what a paper prints).
        table: the tidy data the figure shows.
        name: "<notebook>__<figure>", such as "03_topk__k_sweep".
        dataset: its name, or COMMON for what is the same on all of them.
        summary: one sentence, the alternative text of the gallery.
        provenance: profile and seeds (a list), and run_ids, data, versions, parameters; of COMMON
            no profile and no seed.
        folder: of all figures; None takes `figures/` of the project.
        published: whether git keeps this figure: if its table is equal but for rounding, table and
            picture are kept. To draw the picture again, delete it.
    Returns: Path of the PNG, of a table alone of the CSV.

    Raises:
        ValueError: bad name, empty table, unfinished sentence, unknown profile, provenance with a
            time or a path of this machine, or a damaged one on disk.
        OSError: the folder cannot be written.
    """
    record = full_record(name, dataset, summary, provenance)
    record |= {} if figure is not None else {"picture": False}
    if table.empty:
        raise ValueError(f"{name}: the table is empty; pass the tidy rows the figure shows")
    folder = figures_folder(folder)
    target = folder / dataset
    better = what_is_better(target / f"{name}.json", record)
    if better:
        target = folder.parent / "figures-local" / dataset
        print(f"{name}: kept the figure in {folder.name}/{dataset} ({better}); "
              f"this one is in {target.parent.name}/{dataset}")
    check_writable(target, FIGURES_REMEDY)
    text = table.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    path, csv, origin = (target / f"{name}.{ending}" for ending in ("png", "csv", "json"))
    same = (published and csv.is_file() and origin.is_file()
            and not table_difference(text, csv.read_text(encoding="utf-8"),
                                              tolerance_of(record)))
    if same:
        record["versions"] = read_record(origin).get("versions", record["versions"])
    else:
        write_atomic(csv, text.encode())
    if figure is None:
        path.unlink(missing_ok=True)
    elif not (same and path.is_file()):
        write_atomic(path, png_bytes(figure))
    write_json(origin, record)
    return csv if figure is None else path


def full_record(name: str, dataset: str, summary: str,
                provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Check the provenance and complete it: equal inputs give equal text."""
    parts = NAME.fullmatch(name)
    if not parts:
        raise ValueError(f"name must look like 03_topk__k_sweep, got {name!r}")
    if not re.fullmatch(r"[a-z0-9_]+", dataset):
        raise ValueError(f"dataset must be a name such as scenes, got {dataset!r}")
    summary = " ".join(summary.split())
    if not summary.endswith((".", "!")):
        raise ValueError(f"summary must be a full sentence ending with a period, got {summary!r}")
    if dataset == COMMON:
        if "profile" in provenance or provenance.get("seeds"):
            raise ValueError(f"{name}: what has a profile or seeds belongs to its data set")
    elif provenance.get("profile") not in PROFILES:
        raise ValueError(f"provenance needs profile, one of {', '.join(PROFILES)}; got "
                         f"{provenance.get('profile')!r}")
    if not isinstance(provenance.get("seeds"), list | tuple):
        raise ValueError("provenance needs seeds, a list such as [0, 1, 2] ([] where nothing is "
                         f"random); got {provenance.get('seeds')!r}")
    refuse_machine(provenance, "provenance")
    versions = {"itr_study": __version__, "matplotlib": matplotlib.__version__}
    return {**provenance, "figure": parts[2], "notebook": parts[1], "dataset": dataset,
            "summary": summary, "seeds": list(provenance["seeds"]),
            "seeds_count": len(set(provenance["seeds"])),
            "versions": versions | dict(provenance.get("versions", {}))}


def refuse_machine(value: Any, where: str) -> None:
    """Raise ValueError for times and absolute paths, which differ between equal runs."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if str(key).lower() in MACHINE_KEYS:
                raise ValueError(f"{where} may not hold {key!r}: it differs between equal runs")
            refuse_machine(inner, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            refuse_machine(inner, where)
    elif isinstance(value, Path) or isinstance(value, str) and MACHINE_PATH.match(value):
        raise ValueError(f"{where} holds a path of this machine, {str(value)!r}; name the data "
                         "set or the fingerprint instead")


def what_is_better(existing: Path, record: Mapping[str, Any]) -> str:
    """Say why the existing figure must be kept; empty if it may be replaced."""
    if "profile" not in record or not existing.is_file():
        return ""
    kept, reasons = read_record(existing), []
    if kept.get("profile") in PROFILES[PROFILES.index(record["profile"]) + 1:]:
        reasons.append(f"profile {kept['profile']}, this one {record['profile']}")
    if kept["seeds_count"] > record["seeds_count"]:
        reasons.append(f"{kept['seeds_count']} seeds, this one {record['seeds_count']}")
    return "; ".join(reasons)


# Pages with every figure, from its provenance: HTML for your own, Markdown for the published ones.

NOT_MEASURED = "nothing trained or measured"  # of a common figure that says nothing else
EXAMPLES = "examples"  # in the place of a data set: published figures of scenes, those SHOWN
SHOWN = ("00_start_here__image_to_text", "00_start_here__text_to_image", "03_topk__k_sweep",
         "11_attention_maps__word_maps", "13_when_to_forgive__refusals")
LARGEST = 80_000  # bytes of each of their pictures
HEAD = f"""# Figures

Generated from the provenance beside each figure; edit nothing here by hand. Every picture has
the table it was drawn from (CSV) and its provenance (JSON) under the same name. What no data set
changes stands once, under *{COMMON}*: schematics, tables that a paper prints, and what is always
trained or measured on the same few generated scenes, whatever the data set of the notebook. Under
*{EXAMPLES}* stand a few of generated scenes: `make figures` draws all of them on your machine, and
their page is `figures/scenes/index.html`.
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Figures</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ max-width: 76rem; margin: 0 auto; padding: 0 1rem 3rem; overflow-wrap: anywhere; }}
section {{ display: grid; gap: 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }}
figure {{ margin: 0; }}
img {{ display: block; width: 100%; height: 16rem; object-fit: contain; background: white; }}
small {{ display: block; opacity: 0.8; }}
nav a {{ margin-right: 1rem; white-space: nowrap; }}
</style>
<h1>Figures</h1>
<p>Each picture opens in full; beside it lie the table it was drawn from and its provenance.</p>
<nav>{links}</nav>
{parts}
</html>
"""
Records = list[tuple[str, dict[str, Any]]]


def figure_records(folders: Sequence[Path], beside: Path) -> Records:
    """List (path without ending, provenance) of every figure in order.

    Args:
        folders: of a data set each.
        beside: the folder that paths are relative to.
    Raises: ValueError: files are missing, common figures are filed twice, a provenance is damaged.
    """
    records, broken = [], []
    for folder in folders:
        for path in sorted(folder.glob("*__*.json")):
            record = read_record(path)
            stem = Path(os.path.relpath(path.with_suffix(""), beside)).as_posix()
            endings = (".png", ".csv") if record.get("picture", True) else (".csv",)
            broken += [stem + end for end in endings if not path.with_suffix(end).is_file()]
            records.append((stem, record))
    if broken:
        raise ValueError(f"figures without their files: {', '.join(broken)}; run their "
                         "notebooks again, or delete the JSON beside them")
    common = {Path(stem).name for stem, _ in records if Path(stem).parent.name == COMMON}
    twice = [stem for stem, _ in records if Path(stem).parent.name != COMMON
             and Path(stem).name in common]
    if twice:
        raise ValueError(f"filed twice: {', '.join(twice)}; they stand in {COMMON}/, which is "
                         "enough: delete them (.png, .csv, .json) here")
    return records


def parts_of(records: Records) -> dict[str, dict[str, Records]]:
    """Group the records by folder, and there by notebook."""
    parts: dict[str, dict[str, Records]] = {}
    for stem, record in records:
        of_folder = parts.setdefault(Path(stem).parent.name or record["dataset"], {})
        of_folder.setdefault(record["notebook"], []).append((stem, record))
    return parts


def origin(record: dict[str, Any]) -> str:
    """Say what a figure was made with."""
    seeds = counted(record["seeds_count"], "seed") if record["seeds_count"] else "nothing random"
    seeds += f"; drawn: {record['drawn']}" if "drawn" in record else ""
    return f"profile {record['profile']}, {seeds}" if "profile" in record else record.get(
        "made_from", NOT_MEASURED)


def markdown(records: Records) -> str:
    """Write the page as Markdown: a section per folder, a part per notebook."""
    lines = [HEAD] + ["No figures yet: `make figures` draws them.\n"] * (not records)
    for folder, notebooks in parts_of(records).items():
        lines.append(f"## {folder}\n")
        for notebook, figures in notebooks.items():
            lines.append(f"### {notebook}\n")
            for stem, record in figures:
                alt = record["summary"].replace("[", "(").replace("]", ")")
                picture = f"![{alt}]({stem}.png)\n\n" if record.get("picture", True) else ""
                lines.append(f"{picture}{record['summary']}\n*{notebook}, {origin(record)}*: "
                             f"[table]({stem}.csv), [provenance]({stem}.json)\n")
            if names := not_kept(folder, notebook):
                lines.append("Not kept, since they show photographs or need what only generated "
                             f"data have: {names}.\n")
    return "\n".join(lines)


def not_kept(dataset: str, notebook: str) -> str:
    """Name the figures of a notebook that are published of generated data alone."""
    path = shipped_folder("notebooks") / f"{notebook}.ipynb"
    if dataset not in DATASETS or DATASETS[dataset].generated or not path.is_file():
        return ""
    told = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("itr_study", {})
    return ", ".join(name.partition("__")[2].replace("_", " ")
                     for name in told.get("scenes_only", ()))


def html(records: Records) -> str:
    """Write the page as HTML without scripts."""
    links, parts = [], []
    for folder, notebooks in parts_of(records).items():
        parts.append(f"<h2>{escape(folder)}</h2>")
        for notebook, figures in notebooks.items():
            name = escape(f"{folder}-{notebook}")
            links.append(f'<a href="#{name}">{escape(f"{notebook}, {folder}")}</a>')
            parts += [f'<h3 id="{name}">{escape(notebook)}</h3>', "<section>"]
            parts += [html_figure(quote(stem), record) for stem, record in figures]
            parts.append("</section>")
    return PAGE.format(links="\n".join(links), parts="\n".join(
        parts or ["<p>No figures yet: execute a notebook, or type make figures.</p>"]))


def html_figure(stem: str, record: dict[str, Any]) -> str:
    """Write one figure of that page: picture, if any, sentence and origin."""
    said = escape(record["summary"])
    picture = (f'<a href="{stem}.png"><img loading="lazy" src="{stem}.png" alt="{said}"></a>'
               if record.get("picture", True) else "")
    return (f'<figure>{picture}<figcaption>{said}<small>{escape(origin(record))}: '
            f'<a href="{stem}.csv">table</a>, <a href="{stem}.json">provenance</a></small>'
            "</figcaption></figure>")


def build_gallery(page: Path, folders: Sequence[Path]) -> Path:
    """Write a page of figures (`figure_records`): README.md or, as HTML, index.html."""
    make = markdown if page.suffix == ".md" else html
    write_atomic(page, make(figure_records(folders, page.parent)).encode())
    return page


def inside(folder: Path) -> list[Path]:
    """List the folders of data sets in a folder of all figures, by name."""
    return sorted(path for path in folder.glob("*/") if path.is_dir())


def publish(generated: str | None = None) -> Path:
    """Write README.md of published figures; first copy examples of `generated` data."""
    folder = figures_folder()
    generated_ones = {name for name, record in DATASETS.items() if record.generated}
    if generated is not None:
        publish_examples(folder / generated, folder / EXAMPLES)
    return build_gallery(folder / "README.md",
                         [path for path in inside(folder) if path.name not in generated_ones])


def publish_examples(source: Path, target: Path) -> list[str]:
    """Copy the figures SHOWN, small, unless equal or better exist; return their names."""
    copied = []
    for name in SHOWN:
        (picture, csv, record), kept = (
            [folder / f"{name}.{ending}" for ending in ("png", "csv", "json")]
            for folder in (source, target))
        if not record.is_file() or what_is_better(kept[2], read_record(record)):
            continue
        text = csv.read_text(encoding="utf-8")
        if kept[1].is_file() and not table_difference(text, kept[1].read_text(encoding="utf-8")):
            continue
        with Image.open(picture) as shown:
            write_atomic(kept[0], style.at_most(LARGEST, shown))
        write_atomic(kept[1], text.encode())
        write_atomic(kept[2], record.read_bytes())
        copied.append(name)
    return copied
