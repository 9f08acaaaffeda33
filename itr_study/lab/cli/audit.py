"""What `itr-study audit-captions` writes: a page, a table to correct, and a corrected data set."""

import shutil
from collections import Counter
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from itr_study.data.base import RetrievalDataset, Split, find_root
from itr_study.data.folder import TABLE, UNEVEN, load, read_table, too_small
from itr_study.data.vocabulary import tokenize
from itr_study.digits import counted, with_interval
from itr_study.evaluation.evaluate import evaluate
from itr_study.evaluation.search import joined, one_line
from itr_study.evaluation.table import bootstrap_difference
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.features.dataset import PLAIN, encode_dataset
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import check_writable
from itr_study.lab.label_quality import audit
from itr_study.lab.runs.config import build_objective
from itr_study.lab.runs.run import build_model
from itr_study.lab.studies.bases import base
from itr_study.training.loop import fit

LEFT_OUT, DASHES = "-", tuple("-–—−")  # in the column `correction`; what office programs make of it
SHOWN, SEEDS = 200, 3  # findings with pictures on the page; trainings on either data set
HEAD = ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Captions</title>'
        "<style>body { margin: 2em; font-family: sans-serif } td { vertical-align: top; "
        "padding: 0.3em; max-width: 22em } th { padding: 0.3em }</style></head><body>")


def audit_captions(dataset: RetrievalDataset, folder: Path) -> str:
    """Write audit.html and audit.csv into a folder; say what was found in lines."""
    page, table = folder / "audit.html", folder / "audit.csv"
    if table.exists():
        raise ValueError(f"{table} may hold your corrections: name another folder by --to")
    check_writable(folder, "Name another folder by --to")
    split = joined([*dataset.splits.values()])
    audit.check_audit(split)
    looks, said = audit.arrays(encode_dataset(dataset, tokens=None, sentences="minilm"))
    twins, alike = audit.near_pictures(looks)
    judged = audit.judge(looks, said, split.image_of_text, twins)
    splits = [one.name for one in dataset.splits.values() for _ in one.image_ids]
    found = audit.findings(split, splits, judged, twins, alike)
    ids, text_ids, texts = (*split.image_ids, ""), (*split.text_ids, ""), (*split.texts, "")
    lines = pd.DataFrame([
        (n + 1, one.reason, ids[one.image], text_ids[one.text], texts[one.text], ids[one.other],
         one.detail, "") for n, one in enumerate(found)], columns=[
        "rank", "reason", "image", "text_id", "text", "other", "detail", "correction"])
    notes = told(split, judged, sum(splits[one] == splits[two] for one, two in twins.tolist()))
    write_atomic(page, page_of(dataset, lines, notes).encode())
    write_atomic(table, lines.to_csv(index=False, lineterminator="\n").encode("utf-8-sig"))
    counts = Counter(lines["reason"])
    return "\n".join([
        *notes, *(f"{counts[reason]:>6,}  {reason}" for reason in audit.REASONS if counts[reason]),
        *(one_line(f"{row.rank:>3}. {row.reason}: {row.image}: {row.text!r} ({row.detail})")
          for row in lines.head(15).itertuples()),
        f"written: {page}, {table}. Write what is right into the column `correction` ({LEFT_OUT} "
        f"leaves out the caption or, where none is named, the picture), then add: --apply {table} "
        "--to FOLDER"])


def told(split: Split, judged: audit.Judged, near: int) -> list[str]:
    """Say how many captions may be wrong, what is not listed, and what makes the audit weak."""
    single = int((np.bincount(split.image_of_text) == 1).sum())
    usual = audit.most(map(audit.script, split.texts)).title()
    return [f"{counted(len(split.texts), 'caption')} of {counted(len(split.image_ids), 'picture')}"
            + f", of which at most about {judged.wrong:,} are wrong by their scores" * (
                judged.wrong > 0), *[
            f"{near:,} pairs of pictures of one split are nearly the same; {audit.MOST} are listed"
            ] * (near > audit.MOST), *[
            f"{counted(single, 'picture')} with one caption, which cannot be compared with other "
            "captions of its picture: less is found"] * bool(single), *[
            f"most captions are {usual}, and MiniLM, which reads them, has learnt English: little "
            "of what is wrong is found"] * (usual != "Latin")]


def page_of(dataset: RetrievalDataset, lines: pd.DataFrame, notes: list[str]) -> str:
    """Write a page that needs no network: findings, and the pictures of the first 200."""
    def drawn(image: str, place: int) -> str:
        return escape(image) if not image or place >= SHOWN else (
            f'<img alt="" src="{encode_thumbnail(dataset.open_image(image))}"><br>{escape(image)}')

    shown = lines.drop(columns=["text_id", "correction"]).assign(
        text=lines["text"].map(escape), detail=lines["detail"].map(escape), **{
            side: list(map(drawn, lines[side], range(len(lines)))) for side in ("image", "other")})
    with pd.option_context("display.max_colwidth", None):
        table = shown.to_html(escape=False, index=False, border=0, justify="left")
    return (f"{HEAD}<h1>Captions of {dataset.name}</h1><p>{escape('. '.join(notes))}.</p>{table}"
            "</body></html>\n")


def apply(dataset: RetrievalDataset, table: Path, folder: Path, root: str | None) -> str:
    """Write a corrected data set into a folder, train on both, and say what changed in R@1."""
    changes = corrections(table, dataset)
    if not dataset.has_pictures or any((folder / name).exists() for name in ("images", TABLE)):
        raise ValueError(f"{folder} holds images or {TABLE}: name another folder by --to" if
                         dataset.has_pictures else f"{dataset.name} has no pictures, which a new "
                         "data set needs; correct the file of its captions by hand")
    source = find_root(root, "folder", marks=(TABLE,)) if dataset.name == "folder" else folder
    lines, before = [], sum(len(split.texts) for split in dataset.splits.values())
    for split in dataset.splits.values():
        for t, i in enumerate(split.image_of_text):
            image, text = split.image_ids[i], changes.get(split.text_ids[t], split.texts[t])
            if LEFT_OUT not in (text, changes.get(image)):
                there = (source / "images" / image).is_file()
                lines.append((image if there else f"{image}.png", text, split.name, image))
    found = pd.DataFrame(lines, columns=["image", "text", "split", "of"])
    if lost := set(dataset.splits) - set(found["split"]):
        raise ValueError(f"{table} leaves no caption of {', '.join(sorted(lost))}: keep some")
    check_writable(folder, "Name another folder by --to")
    aside = folder / ".unfinished"  # until all is there; none is left half-made
    shutil.rmtree(aside, ignore_errors=True)
    for made, image in found[["image", "of"]].drop_duplicates().itertuples(index=False):
        (aside / made).parent.mkdir(parents=True, exist_ok=True)
        if made == image:
            shutil.copyfile(source / "images" / image, aside / made)
        else:
            dataset.open_image(image).save(aside / made)
    aside.rename(folder / "images")
    found = found.drop(columns="of")
    write_atomic(folder / TABLE, found.to_csv(index=False, lineterminator="\n").encode())
    return "\n".join([
        f"{counted(len(changes), 'correction')}: {before:,} captions before, {len(found):,} of "
        f"{found['image'].nunique():,} pictures now", *gains(dataset, load(folder)), "The data set "
        f"is in {folder}: itr-study train first --dataset folder --data {folder}"])


def corrections(table: Path, dataset: RetrievalDataset) -> dict[str, str]:
    """Read the corrections of an audit by the id of the caption, or of the picture."""
    again = "Audit the data again, and correct that table"
    split, found = joined([*dataset.splits.values()]), {}
    known = dict(zip(split.text_ids, map(str.strip, split.texts), strict=True))
    known |= dict.fromkeys(split.image_ids, "")
    for number, row in read_table(table, ("image", "text_id", "text", "correction"), again):
        if row is None:
            raise ValueError(f"{table}:{number}: {UNEVEN}")
        one, text, correction = row["text_id"] or row["image"], row["text"], row["correction"]
        correction = LEFT_OUT if correction in DASHES else correction
        if correction != LEFT_OUT and correction and not tokenize(correction):
            raise ValueError(f"{table}:{number}: the correction {correction!r} holds no word")
        if correction and (known.get(one) != text or found.get(one, correction) != correction):
            raise ValueError(f"{table}:{number}: {one} is no caption {text!r} of these data, or "
                             f"has two corrections. {again}")
        if correction and not text and correction != LEFT_OUT:
            raise ValueError(f"{table}:{number}: {one} is a picture, which can only be left out: "
                             f"{LEFT_OUT}, got {correction!r}")
        found |= {one: correction} if correction else {}
    if not found:
        raise ValueError(f"{table} has nothing in the column `correction`: write what is right")
    return found


def gains(old: RetrievalDataset, new: RetrievalDataset) -> list[str]:
    """Train `first` on both with some seeds; say what changed in R@1 on the corrected test."""
    config, sides = base("folder", "first"), []
    for dataset in (old, new):
        data, models = encode_dataset(dataset, PLAIN, None, config.sentences), []
        for seed in range(SEEDS):
            models.append(build_model(config.with_(seed=seed), data.inputs))
            fit(models[-1], build_objective(config.objective), data, config.settings, seed=seed)
        sides.append(models)
    test = data.splits["test"]
    before, after = ([evaluate(model, test).ranks for model in models] for models in sides)
    change = bootstrap_difference(after, before, test.image_of_text)
    return ["R@1 on the corrected test changes by {} points from picture to caption and by {} from "
            "caption to picture (95 % over its pictures, mean of {} seeds)".format(
                *(with_interval(*change[name]) for name in ("i2t_r1", "t2i_r1")), SEEDS),
            *too_small(new)]
