"""The audit as a new user meets it: the table, the page, corrections, and bad input."""

import csv

import numpy as np
import pytest

from itr_study.data import load_dataset
from itr_study.data.folder import load
from itr_study.encoders import IMAGE_ENCODERS
from itr_study.features import dataset as features
from itr_study.lab.cli import audit
from tests.cli.test_app import run  # noqa: F401
from tests.features.test_dataset import Tiny

SPOILED = ("image", "DSC_0042.jpg", "ein Boot und das Meer mit einem Baum", "собака",
           "a cafÃ© at night", "a tree &amp; a boat")


def write_folder(folder, texts, images=60, captions=4):
    """Pictures of scenes with their captions, of which `texts` replaces some."""
    (folder / "images").mkdir(parents=True)
    scenes = load_dataset("scenes", train=images, dev=1, test=1, texts_per_image=captions)
    split = scenes.splits["train"]
    for image in split.image_ids:
        scenes.open_image(image).resize((64, 64)).save(folder / "images" / f"{image}.png")
    rows = [(f"{split.image_ids[i]}.png", texts.get(t, text))
            for t, (i, text) in enumerate(zip(split.image_of_text, split.texts, strict=True))]
    with open(folder / "captions.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("image", "text"), *rows])
    return folder


@pytest.fixture
def spoiled(tmp_path, monkeypatch, store):
    """A folder with six captions that say nothing right, read by an encoder of a moment."""
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    for module in (features, audit):
        monkeypatch.setattr(module, "PLAIN", "tiny:pooled:one")
    return write_folder(tmp_path / "mine", {7 * n: text for n, text in enumerate(SPOILED)})


def read(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_spoiled_captions_are_first_and_a_corrected_data_set_is_made(
        run, spoiled, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(audit, "SEEDS", 1)
    code, found, error = run("audit-captions", "--data", spoiled, "--to", tmp_path)
    assert code == 0, error
    rows = read(tmp_path / "audit.csv")
    assert sorted(row["text"] for row in rows[:6]) == sorted(SPOILED)
    assert "240 captions of 60 pictures, of which at most about" in found
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert page.count("<tr>") == len(rows) and "a tree &amp;amp; a boat" in page
    assert page.count('src="data:image/jpeg') >= min(len(rows), audit.SHOWN)
    code, _, error = run("audit-captions", "--data", spoiled, "--to", tmp_path)
    assert code == 2 and "may hold your corrections" in error
    for row, correction in zip(rows[:3], ("–", "a boat", "-"), strict=True):
        row["correction"] = correction
    leaves = rows[1]["image"]
    rows.append(dict.fromkeys(rows[0], "") | {"image": "scene-000059.png", "correction": "-"})
    with open(tmp_path / "fixed.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")  # as some spreadsheets save it
        writer.writeheader()
        writer.writerows(rows)
    new = tmp_path / "new"
    code, found, error = run("audit-captions", "--data", spoiled, "--apply",
                             tmp_path / "fixed.csv", "--to", new)
    assert code == 0, error
    assert "4 corrections: 240 captions before, 234 of 59 pictures now" in found
    assert "R@1 on the corrected test changes by" in found and "[" in found
    old, made = load(spoiled), load(new)
    for name, split in made.splits.items():
        assert set(split.image_ids) <= set(old.splits[name].image_ids)
    texts = {text for split in made.splits.values() for text in split.texts}
    assert "a boat" in texts and len(texts & set(SPOILED)) == 3
    path = new / "images" / leaves
    assert path.read_bytes() == (spoiled / "images" / leaves).read_bytes()
    code, _, error = run("audit-captions", "--data", spoiled, "--apply", tmp_path / "fixed.csv",
                         "--to", new)
    assert code == 2 and "holds images or captions.csv" in error


@pytest.mark.parametrize(("text", "said"), [
    ("image,text_id,text,correction\n,,,\n", "has nothing in the column"),
    ("image,text,correction\na.png,x,b\n", "text, correction; found image, text, corr"),
    ("image,text_id,text,correction\nscene-000000.png,zz#1,a,b\n", "zz#1 is no caption 'a' of"),
    ("image,text_id,text,correction\nscene-000000.png,scene-000000.png#0,else,b\n",
     "scene-000000.png#0 is no caption 'else' of these data"),
    ("image,text_id,text,correction\nscene-000000.png,,,b\n", "which can only be left out"),
    ("image,text_id,text,correction\nscene-000000.png,scene-000000.png#0,x,?\n",
     r"fixed.csv:2: the correction '\?' holds no word"),
    ("image,text_id,text,correction\nscene-000000.png,,,-\nscene-000001.png,,,-\n"
     "scene-000002.png,,,-\nscene-000003.png,,,-\n", "leaves no caption of"),
    ("image,text_id,text,correction\na,\"b\n", "fixed.csv:2 is not CSV"),
    ("image,text_id,text,correction\na,b,c\n", "fixed.csv:2: too many or too few columns"),
    ("sep=;\nImage;text_id;text;Correction\na.png;;;-\n", "fixed.csv:3: a.png is no caption"),
    ("", "expected the columns image, text_id, text, correction; found none")])
def test_a_table_that_corrects_nothing_is_refused_before_anything_is_written(
        run, tmp_path, text, said, store):  # noqa: F811
    folder = write_folder(tmp_path / "mine", {}, images=4)
    (tmp_path / "fixed.csv").write_text(text, encoding="utf-8")
    dataset = load(folder)
    with pytest.raises(ValueError, match=said):
        audit.apply(dataset, tmp_path / "fixed.csv", tmp_path / "new", str(folder))
    assert not (tmp_path / "new" / "images").exists() and not list(tmp_path.glob("new/*.csv"))
    code, _, error = run("audit-captions", "--data", folder, "--apply", tmp_path / "none.csv")
    assert code == 2 and "there is no " in error
    code, _, error = run("audit-captions", "--data", folder, "--to", tmp_path)
    assert code == 2 and "an audit needs 50 pictures or more, got 4" in error


def test_what_makes_an_audit_weak_is_said():
    scenes = load_dataset("scenes", train=3, dev=1, test=1, texts_per_image=1)
    split, judged = scenes.splits["train"], audit.audit.Judged(*np.zeros((5, 3)), 0)
    first, near, single = audit.told(split, judged, 60)
    assert first == "3 captions of 3 pictures"  # "at most 0" would only say that they are few
    assert near == "60 pairs of pictures of one split are nearly the same; 50 are listed"
    assert len(audit.told(split, judged, 50)) == 2
    assert single.startswith("3 pictures with one caption, which cannot be compared")
    other = type(split)("train", split.image_ids, split.text_ids, ("собака",) * 3,
                        split.image_of_text)
    assert audit.told(other, judged, 2)[-1].startswith("most captions are Cyrillic")
