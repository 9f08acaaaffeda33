"""What `itr-study audit-captions` writes: a page, a table to correct, and a corrected data set."""

import csv
import shutil
from collections import Counter
from html import escape
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import load_dataset
from itr_study.data.base import RetrievalDataset, find_root, read_text
from itr_study.data.folder import TABLE, too_small
from itr_study.digits import counted, with_interval
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.search import joined, one_line
from itr_study.evaluation.table import bootstrap_difference
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.features.dataset import PLAIN, encode_dataset
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import check_writable
from itr_study.lab.batch.schedule import data_root
from itr_study.lab.cli.chosen import data_options
from itr_study.lab.label_quality import audit
from itr_study.lab.runs.config import build_objective
from itr_study.lab.runs.run import build_model
from itr_study.lab.studies.bases import base
from itr_study.training.loop import fit

LEFT_OUT = "-"  # in the column `correction`
SHOWN = 200  # findings on the page, two pictures each
SEEDS = 3
STYLE = ("body { max-width: 70em; margin: 2em auto; padding: 0 1em; font-family: sans-serif } "
         "td { padding: 0.4em 1em 0.4em 0; vertical-align: top }")


def audit_captions(name: str, data: Path | None, changes: list[str], page: Path, table: Path
                   ) -> str:
    """Audit a data set, write the page and the table, and return what was found in lines."""
    for path in (page, table):
        check_writable(path.absolute().parent, "Name a file in a folder that you may write")
    if table.exists():
        raise ValueError(f"{table} is there and may hold your corrections: name another file, such "
                         "as --csv audit2.csv, or correct the data by it: --apply")
    dataset = load_dataset(name, data_root(name, data), **data_options(changes))
    split = joined([*dataset.splits.values()])
    audit.check_audit(split)
    encoded = encode_dataset(dataset, tokens=None, sentences="minilm")
    looks, said = audit.arrays(encoded)
    twins, alike = audit.near_pictures(looks)
    judged = audit.judge(looks, said, split.image_of_text, twins)
    splits = [one.name for one in dataset.splits.values() for _ in one.image_ids]
    found = audit.findings(split, splits, judged, twins, alike)
    lines = pd.DataFrame([{
        "rank": rank, "reason": one.reason, "image": split.image_ids[one.image],
        "text_id": "" if one.text is None else split.text_ids[one.text],
        "text": "" if one.text is None else split.texts[one.text],
        "other": "" if one.other is None else split.image_ids[one.other],
        "detail": one.detail, "correction": ""} for rank, one in enumerate(found, start=1)])
    write_atomic(table, lines.to_csv(index=False, lineterminator="\n").encode("utf-8-sig"))
    counts = Counter(one.reason for one in found)
    notes = [f"{counted(len(split.texts), 'caption')} of {counted(len(split.image_ids), 'picture')}"
             f"; at most {judged.wrong:,} captions are wrong, by their scores"]
    if judged.single:
        notes.append(f"{counted(judged.single, 'picture')} with one caption: it is compared with "
                     "its picture alone, not with other captions of it, and less is found")
    if "dev" not in dataset.splits:
        notes.append("there is no dev split: search cannot say when nothing fits")
    if (usual := Counter(map(audit.script, split.texts)).most_common(1)[0][0]) != "LATIN":
        notes.append(f"most captions are written in {usual.title()}, and MiniLM, which reads them, "
                     "has learnt English: what does not fit is hardly found")
    write_atomic(page, page_of(dataset, lines, notes).encode())
    return "\n".join([*notes, *(f"  {counts[reason]:>5,}  {reason}" for reason in audit.REASONS
                                if counts[reason]),
                      *(one_line(f"{row.rank:>3}. {row.reason}: {row.image}: {row.text!r} "
                                 f"({row.detail})") for row in lines.head(10).itertuples()),
                      f"written: {page}, {table}. Write into the column `correction` what is right "
                      f"({LEFT_OUT} leaves out a caption, without one the picture), then: "
                      f"itr-study audit-captions --apply {table}"])


def page_of(dataset: RetrievalDataset, lines: pd.DataFrame, notes: list[str]) -> str:
    """Write a page that needs no network: findings, and the pictures of the first 200."""
    def shown(image: str, place: int) -> str:
        drawn = image and place < SHOWN and dataset.has_pictures
        return f'<img alt="" src="{encode_thumbnail(dataset.open_image(image))}"><br>' * bool(
            drawn) + escape(image)

    rows = "".join(
        f"<tr><td>{row.rank}<td>{escape(row.reason)}<td>{shown(row.image, place)}"
        f"<td>{escape(row.text)}<td>{shown(row.other, place)}<td>{escape(row.detail)}</tr>"
        for place, row in enumerate(lines.itertuples()))
    head = "".join(f"<th>{name}" for name in ("", "reason", "picture", "caption", "other", ""))
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Captions of '
            f"{dataset.name}</title><style>{STYLE}</style></head><body><h1>Captions of "
            f"{dataset.name}</h1>{''.join(f'<p>{escape(note)}.</p>' for note in notes)}<table>"
            f"<tr>{head}</tr>{rows}</table></body></html>\n")


def apply(name: str, data: Path | None, changes: list[str], table: Path, target: Path) -> str:
    """Write a corrected data set, train on both, and say what changed in R@1."""
    root = data_root(name, data)
    dataset = load_dataset(name, root, **data_options(changes))
    if not dataset.has_pictures:
        raise ValueError(f"{name} has features and no pictures, which a new data set needs; "
                         "correct the file of its captions by hand")
    made = corrected(dataset, read_corrections(table, dataset), target, root)
    return "\n".join([made, *gains(dataset, load_dataset("folder", target)), (
        f"The data set is in {target}: itr-study train first --dataset folder --data {target}")])


def read_corrections(table: Path, dataset: RetrievalDataset) -> dict[str, str]:
    """Read the corrections of an audit by the id of the caption, or of the picture."""
    if not table.is_file():
        raise ValueError(f"there is no file {table}; expected the table that an audit writes")
    rows = pd.read_csv(StringIO(read_text(table)), sep=None, engine="python", dtype=str,
                       keep_default_na=False)
    if missing := {"image", "text_id", "correction"} - set(rows.columns):
        raise ValueError(f"{table} lacks the column {', '.join(sorted(missing))}; expected the "
                         "table that an audit writes")
    found = {row.text_id or row.image: row.correction.strip() for row in rows.itertuples()
             if row.correction.strip()}
    if not found:
        raise ValueError(f"{table} has no correction: write into the column `correction` what is "
                         f"right, or {LEFT_OUT} to leave out the caption")
    split = joined([*dataset.splits.values()])
    for one, correction in found.items():
        check_choice(f"id in {table}", one, (*split.text_ids, *split.image_ids))
        if one in split.image_ids and correction != LEFT_OUT:
            raise ValueError(f"{table}: a picture can only be left out ({LEFT_OUT}), got "
                             f"{correction!r} for {one}")
    return found


def corrected(dataset: RetrievalDataset, changes: dict[str, str], target: Path,
              root: str | None) -> str:
    """Write the data set anew as a folder, its pictures as they are; say what changed."""
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{target} is not empty: name another folder, such as --to corrected2")
    images = find_root(root, "folder", marks=(TABLE,)) / "images" if dataset.name == "folder" else (
        target / "none")
    lines = []
    for split in dataset.splits.values():
        for i, image in enumerate(split.image_ids):
            texts = [changes.get(split.text_ids[t], split.texts[t])
                     for t in np.flatnonzero(split.image_of_text == i)]
            texts = [text for text in texts if text != LEFT_OUT]
            if changes.get(image) == LEFT_OUT or not texts:
                continue
            path = target / "images" / image
            path.parent.mkdir(parents=True, exist_ok=True)
            if (images / image).is_file():
                shutil.copyfile(images / image, path)
            else:
                path = path.with_name(f"{path.name}.png")
                dataset.open_image(image).save(path)
            name = path.relative_to(target / "images").as_posix()
            lines += [(name, text, split.name) for text in texts]
    written = StringIO()
    csv.writer(written, lineterminator="\n").writerows([("image", "text", "split"), *lines])
    write_atomic(target / TABLE, written.getvalue().encode())
    before = joined([*dataset.splits.values()])
    return (f"{counted(len(changes), 'correction')}: {len(before.texts):,} captions of "
            f"{len(before.image_ids):,} pictures before, {len(lines):,} of "
            f"{len({name for name, _, _ in lines}):,} now")


def gains(old: RetrievalDataset, new: RetrievalDataset) -> list[str]:
    """Train `first` on both with some seeds; say what changed in R@1 on the corrected test."""
    config = base("folder", "first")
    sides, test = [], None
    for dataset in (old, new):
        data = encode_dataset(dataset, PLAIN, tokens=None, sentences=config.sentences)
        models = []
        for seed in range(SEEDS):
            model = build_model(config.with_(seed=seed), data.inputs)
            fit(model, build_objective(config.objective), data, config.settings, seed=seed)
            models.append(model)
        sides.append(models)
        test = data.splits["test"]
    ranks = [[evaluate(model, test).ranks for model in models] for models in sides]
    change = bootstrap_difference(ranks[1], ranks[0], test.image_of_text)
    return [f"R@1, {way}, on the corrected test: {with_interval(*change[key])} points by the "
            f"corrections (95 % over its pictures, mean of {SEEDS} seeds)"
            for way, key in (("picture finds caption", "i2t_r1"), ("caption finds picture",
                                                                   "t2i_r1"))] + too_small(new)
