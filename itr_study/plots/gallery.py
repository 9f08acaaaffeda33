"""The gallery: a page with every figure, made from the provenance beside each of them."""

from pathlib import Path
from typing import Any

from itr_study.digits import counted
from itr_study.files.atomic import read_json, write_atomic
from itr_study.plots.figures import COMMON

NOT_MEASURED = "nothing trained or measured"  # of a common figure that says nothing else
HEAD = """# Figures

Generated from the provenance beside each figure; edit nothing here by hand. Every picture has
the table it was drawn from (CSV) and its provenance (JSON) under the same name. What no data set
changes stands once, under *common*: schematics, tables that a paper prints, and what is always
trained or measured on the same few generated scenes, whatever the data set of the notebook.
"""


def figure_records(folder: Path | str) -> list[tuple[str, dict[str, Any]]]:
    """(path without ending, provenance) of every figure, by data set, notebook and name.

    Raises:  ValueError listing every figure that lacks its picture or its table, and those filed
             under a data set though they are common to all.
    """
    folder = Path(folder)
    records, broken = [], []
    for path in sorted(folder.glob("*/*__*.json")):
        record = read_json(path)
        endings = (".png", ".csv") if record.get("picture", True) else (".csv",)
        lost = [ending for ending in endings if not path.with_suffix(ending).is_file()]
        broken += [f"{path.relative_to(folder).with_suffix(ending).as_posix()}"
                   for ending in lost]
        records.append((path.relative_to(folder).with_suffix("").as_posix(), record))
    if broken:
        raise ValueError(f"figures without their files: {', '.join(broken)}; run their "
                         "notebooks again, or delete the JSON beside them")
    common = {path.stem for path in (folder / COMMON).glob("*.json")}
    twice = [stem for stem, _ in records if Path(stem).parent.name != COMMON
             and Path(stem).name in common]
    if twice:
        raise ValueError(f"filed twice: {', '.join(twice)}; they stand in {COMMON}/, which is "
                         "enough: delete them (.png, .csv, .json) here")
    return records


def gallery_text(records: list[tuple[str, dict[str, Any]]]) -> str:
    """The page as Markdown: a section per data set, a part per notebook."""
    lines, dataset, notebook = [HEAD], None, None
    if not records:
        lines.append("No figures yet: `make figures` draws them.\n")
    for stem, record in records:
        if record["dataset"] != dataset:
            dataset, notebook = record["dataset"], None
            lines.append(f"## {dataset}\n")
        if record["notebook"] != notebook:
            notebook = record["notebook"]
            lines.append(f"### {notebook}\n")
        lines.append(entry(stem, record))
    return "\n".join(lines)


def entry(stem: str, record: dict[str, Any]) -> str:
    """One figure: the picture, if it has one, with its summary as alt text, and its origin."""
    alt = record["summary"].replace("[", "(").replace("]", ")")
    seeds = counted(record["seeds_count"], "seed") if record["seeds_count"] else "nothing random"
    seeds += f"; drawn: {record['drawn']}" if "drawn" in record else ""
    origin = f"profile {record['profile']}, {seeds}" if "profile" in record else record.get(
        "made_from", NOT_MEASURED)
    picture = f"![{alt}]({stem}.png)\n\n" if record.get("picture", True) else ""
    return (f"{picture}{record['summary']}\n*{record['notebook']}, {origin}*: "
            f"[table]({stem}.csv), [provenance]({stem}.json)\n")


def build_gallery(folder: Path | str) -> Path:
    """Write README.md of a folder of figures; the same figures give the same bytes."""
    target = Path(folder) / "README.md"
    write_atomic(target, gallery_text(figure_records(folder)).encode())
    return target
