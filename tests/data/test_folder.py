import csv
import io
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.data import load_dataset
from itr_study.data.base import DataError
from itr_study.data.folder import hash_splits
from tests.data import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.own_folder(tmp_path)


def load(folder, **options):
    return load_dataset("folder", folder, cache=folder.parent / "checks", **options)


def test_reads_pictures_captions_and_splits(folder):
    data = load(folder)
    assert {n: s.image_ids for n, s in data.splits.items()} == {
        "train": ("p0.png", "p1.png"), "dev": ("p2.png", "p3.png"), "test": ("p4.png", "p5.png")}
    train = data.splits["train"]
    assert train.texts == ("A picture, number 0", "Once more", "A picture, number 1")
    assert train.text_ids == ("p0.png#0", "p0.png#1", "p1.png#0")
    assert train.image_of_text.tolist() == [0, 0, 1]
    assert data.open_image("p5.png").size == (32, 24) and data.seen_by == ()


def test_sub_folders_and_byte_order_mark(folder):
    tiny.picture(folder / "images" / "more" / "x.jpg")
    tiny.add_line(folder / "captions.csv", "more/x.jpg,Deep down,test")
    table = folder / "captions.csv"
    table.write_bytes(b"\xef\xbb\xbf" + table.read_text().replace("\n", "\r\n").encode())
    assert load(folder).splits["test"].image_ids[-1] == "more/x.jpg"


def test_hash_splits_need_no_column(tmp_path):
    data = load(tiny.own_folder(tmp_path, split=False))
    assert sum(len(s.image_ids) for s in data.splits.values()) == 6
    assert all(s.image_ids for s in data.splits.values())


def test_a_column_of_splits_by_another_name_is_said(folder):
    table = folder / "captions.csv"
    table.write_text(table.read_text().replace("split", "subset", 1))
    assert ("columns not read", "captions.csv", "subset; splits are read from a column named split"
            ) in load(folder).report.notes
    lines = table.read_text().replace("subset", "split", 1).splitlines()
    table.write_text("".join(f"{line},{'by' * (not n)}\n" for n, line in enumerate(lines)))
    assert load(folder).report.notes == []  # where splits are read, another column is no news


def test_hash_splits_are_fixed_and_stable():
    ids = [f"picture{n}" for n in range(1000)]
    splits = hash_splits(ids)
    assert {s: len(m) for s, m in splits.items()} == {"train": 782, "dev": 114, "test": 104}
    assert splits["test"][:3] == ["picture17", "picture23", "picture26"]
    backwards = hash_splits(ids[::-1])
    assert all(set(backwards[s]) == set(splits[s]) for s in splits)
    more = hash_splits([*ids, *(f"other{n}" for n in range(500))])
    assert all(set(splits[s]) <= set(more[s]) for s in splits)  # nobody moves
    assert sorted(map(len, hash_splits(["a", "b", "c"]).values())) == [1, 1, 1]
    for number in range(4, 12):  # training needs two images
        for names in range(20):
            few = hash_splits([f"{names}, {image}" for image in range(number)])
            assert len(few["train"]) >= 2 and few["dev"] and few["test"]
            assert sum(map(len, few.values())) == number


def test_all_problems_at_once(folder):
    for line in ("p9.png,No such picture,train", ",Nameless,train", "p1.png,,train",
                 "p1.png,In another split,test", "p1.png,Wrong split,holdout",
                 "p1.png,Too, many,train", "p1.png", "../p1.png,Outside,train"):
        tiny.add_line(folder / "captions.csv", line)
    tiny.picture(folder / "images" / "alone.png")
    tiny.truncate(folder / "images" / "p4.png")
    with pytest.raises(DataError) as caught:
        load(folder)
    for part in ("missing picture: p9.png", "captions.csv:10: image '' is not a file name",
                 "empty caption: p1.png#1", "overlapping splits: p1.png: in train and in test",
                 "captions.csv:13: split 'holdout' is none of", "captions.csv:14: too many or too",
                 "captions.csv:15: too many or too", "captions.csv:16: image '../p1.png'",
                 "image without captions: alone.png", "undecodable picture: p4.png|truncated",
                 "names a file below ", "9 problems|10 problems"):
        assert any(p in str(caught.value) for p in part.split("|")), part


def test_empty_split(folder):
    table = folder / "captions.csv"
    table.write_text(table.read_text().replace(",test", ",train"))
    with pytest.raises(DataError, match="^1 problem in the data:\n  empty split: test"):
        load(folder)
    table.write_text("image,text\n")
    with pytest.raises(DataError, match="empty split: captions.csv: it holds no usable line"):
        load(folder)


def test_wrong_columns_and_broken_csv(folder):
    (folder / "captions.csv").write_text("picture;caption\np0.png;A\n")
    with pytest.raises(DataError, match="columns image, text; found picture;caption"):
        load(folder)
    (folder / "captions.csv").write_text('image,text\np0.png,"A "dog" runs"\n')
    with pytest.raises(DataError, match="captions.csv:2 is not CSV"):
        load(folder)
    (folder / "captions.csv").unlink()
    with pytest.raises(DataError, match="Make a folder with images/ and captions.csv"):
        load(folder)


def test_a_column_given_twice_is_refused(folder):
    (folder / "captions.csv").write_text("image,text,text\np0.png,One,Two\n")
    with pytest.raises(DataError, match="column text twice; rename or remove one"):
        load(folder)


def test_a_quote_never_closed_is_said(folder):
    tiny.add_line(folder / "captions.csv", 'p1.png,"' + "long " * 40_000)
    with pytest.raises(DataError, match="longer than 131,072 characters: is a quote never closed"):
        load(folder)


def test_too_few_images_for_three_splits(tmp_path):
    folder = tiny.own_folder(tmp_path, split=False)
    table = folder / "captions.csv"
    table.write_text("image,text\np0.png,A\np1.png,B\n")
    for name in ("p2", "p3", "p4", "p5"):
        (folder / "images" / f"{name}.png").unlink()
    with pytest.raises(DataError, match="empty split: captions.csv: it names 2 images, and three "
                                        "splits need at least 3"):
        load(folder)


def test_names_of_one_look_and_other_bytes_are_one_file(folder):
    """A Mac writes an accent as a character of its own, most others do not."""
    tiny.picture(folder / "images" / "cafe\u0301.png", seed=7)
    tiny.add_line(folder / "captions.csv", "caf\u00e9.png,A cup,test")
    data = load(folder)
    assert data.splits["test"].image_ids[-1] == "caf\u00e9.png"
    assert data.open_image("caf\u00e9.png").size == (32, 24)


def test_what_is_used_twice_is_noted(folder):
    assert load(folder).report.notes == []
    tiny.picture(folder / "images" / "copy.png", seed=0)  # p0.png, of train
    for line in ("copy.png,Another name,test", "p1.png,Once more,train", "p0.png,Once more,train",
                 "p4.png,Once more,test"):
        tiny.add_line(folder / "captions.csv", line)
    notes = [(p.kind, p.where) for p in load(folder).report.notes]
    assert notes == [("caption twice for one image", "p0.png"),
                     ("caption in two splits", "Once more"),
                     ("picture in two splits", "copy.png")]
    assert "p0.png of train" in load(folder).report.notes[-1].detail


def test_skip_bad(folder):
    (folder / "images" / "p4.png").write_bytes(b"")
    data = load(folder, skip_bad=True)
    assert data.splits["test"].image_ids == ("p5.png",)
    assert [(p.kind, p.where) for p in data.report.excluded] == [("empty picture", "p4.png")]


def rows_of(folder):
    return list(csv.reader(io.StringIO((folder / "captions.csv").read_text())))


def renamed(rows, change):
    return rows[:1] + [[change(image), *others] for image, *others in rows[1:]]


def written(rows, **how):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", **how).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("write", [
    lambda rows: written(rows, delimiter=";"), lambda rows: written(rows, delimiter="\t"),
    lambda rows: written(rows, delimiter="|"),
    lambda rows: "sep=;\r\n" + written(rows, delimiter=";"),
    lambda rows: written(rows, quoting=csv.QUOTE_ALL).replace("\n", "\r\n"),
    lambda rows: "\n\n" + written([[" Image", "TEXT ", "Split"], *rows[1:]]),
    lambda rows: written([[a, b, "", c, "", ""] for a, b, c in rows]),
    lambda rows: written([[n or "", *row] for n, row in enumerate(rows)]),
    lambda rows: written(rows) + ",,\n , ,\n\n",
    lambda rows: written(rows).replace(",", ", ").replace('"A picture, ', '"A picture,'),
], ids=["semicolons", "tabs", "bars", "sep", "quotes", "header", "empty columns", "numbers",
        "empty rows", "spaces"])
def test_tables_as_spreadsheets_write_them(folder, write):
    plain, rows = load(folder), rows_of(folder)
    (folder / "captions.csv").write_text(write(rows))
    assert load(folder).fingerprint == plain.fingerprint
    (folder / "captions.csv").write_bytes(write(rows).encode("utf-16"))
    assert load(folder).fingerprint == plain.fingerprint


@pytest.mark.parametrize("before", ["", "images/", "/home/me/images/", "../images/"])
def test_a_missing_picture_is_missed_where_it_was_looked_for(folder, before):
    rows = [*rows_of(folder), ["trips/away.png", "A fox", "train"]]
    (folder / "captions.csv").write_text(written(renamed(rows, lambda image: before + image)))
    with pytest.raises(DataError) as caught:
        load(folder)
    assert f"no file {folder / 'images' / 'trips' / 'away.png'}\n" in str(caught.value)


def test_what_goes_wrong_often_is_said_once_and_a_bit(folder):
    (folder / "captions.csv").write_text("image,text\n" + "p0.png,A dog, a cat\n" * 30)
    with pytest.raises(DataError) as caught:
        load(folder)
    assert "malformed line: and 20 more\n" in str(caught.value)
    assert "p0.png: no usable line of captions.csv names it" in str(caught.value)
    (folder / "captions.csv").rename(folder / "Captions.csv")
    with pytest.raises(DataError, match="no captions.csv.; it has Captions.csv, images"):
        load_dataset("folder", folder)
    (folder / "captions.csv").write_bytes(b"PK\3\4\xff")
    with pytest.raises(DataError, match="is an Excel workbook .*CSV UTF-8"):
        load(folder)


def test_what_stands_in_no_column_is_refused(folder):
    rows = [[a, b, "", c] for a, b, c in rows_of(folder)]
    rows[-1][2] = "train"
    (folder / "captions.csv").write_text(written(rows))
    with pytest.raises(DataError, match="^1 problem.*\n.*captions.csv:8: too many or too few"):
        load(folder)


@pytest.mark.parametrize("change", [
    lambda name: f"images/{name}", lambda name: f"./{name}", str.upper,
    lambda name: f"IMAGES\\{name.upper()}", lambda name: f"/home/me/images/{name}",
    lambda name: f"C:\\Users\\me\\images\\{name}", lambda name: f"../images/{name}"])
def test_names_that_differ_by_what_systems_differ_in_are_read(folder, change):
    tiny.picture(folder / "images" / "trips" / "x.png")
    tiny.add_line(folder / "captions.csv", "trips/x.png,A fountain,test")
    plain, rows = load(folder), rows_of(folder)
    (folder / "captions.csv").write_text(written(renamed(rows, change)))
    assert load(folder).fingerprint == plain.fingerprint
    mixed = [[change(a) if n % 2 else a, *b] for n, (a, *b) in enumerate(rows)]
    (folder / "captions.csv").write_text(written(mixed))
    data = load(folder)  # two spellings of p0.png are one image
    assert data.splits["train"].text_ids == plain.splits["train"].text_ids


@pytest.mark.parametrize("change", [
    lambda name: f"photos/{name}", lambda name: name.removesuffix(".png"),
    lambda name: name.replace(".png", ".jpeg"), lambda name: f"/home/me/{name}"])
def test_names_that_all_differ_in_one_way_are_said_once(folder, change):
    rows = rows_of(folder)
    (folder / "captions.csv").write_text(written(renamed(rows, change)))
    with pytest.raises(DataError, match="^1 problem.*\n.*not those of files: captions.csv: 6, such "
                                        f"as '{change('p0.png')}': should that be 'p0.png'"):
        load(folder)


def test_no_name_is_taken_for_that_of_another_picture(folder):
    """Of p1 another spelling is there twice; rome/1.png is missing, and paris/1.png is another."""
    tiny.picture(folder / "images" / "P1.PNG", seed=50)
    tiny.picture(folder / "images" / "paris" / "1.png", seed=51)
    for line in ("p1.Png,Which one,train", "rome/1.png,A fountain,train", "P1.PNG,Me,train"):
        tiny.add_line(folder / "captions.csv", line)
    with pytest.raises(DataError) as caught:
        load(folder)
    assert "missing picture: p1.Png" in str(caught.value)
    assert "rome/1.png" in str(caught.value)


def test_names_that_are_none_are_problems_not_crashes(folder):
    for name in ("x" * 300 + ".png", "/etc/hostname", "../../mine.png", "a\x01b.png"):
        tiny.add_line(folder / "captions.csv", f"{name},A text,train")
    with pytest.raises(DataError, match="^4 problems"):
        load(folder)


@settings(max_examples=30, deadline=None)
@given(cells=st.lists(st.lists(st.text(st.characters(codec="utf-8"), max_size=6)
                               | st.sampled_from(("p0.png", "test", "a dog", "..")), max_size=4)))
def test_any_table_is_read_or_refused(tmp_path_factory, cells):
    folder = Path(tmp_path_factory.getbasetemp(), "any", "mine")
    if not folder.is_dir():
        tiny.own_folder(folder.parent)
    (folder / "captions.csv").write_text(written([["image", "text", "split"], *cells]),
                                         encoding="utf-8", newline="")
    try:
        assert load(folder).splits
    except DataError:
        pass


def test_links_and_what_is_no_picture_in_the_folder(folder, tmp_path):
    shutil.move(folder / "images", tmp_path / "nas")
    (folder / "images").mkdir()
    (folder / "images" / "disk").symlink_to(tmp_path / "nas")
    (folder / "images" / "twice").symlink_to(tmp_path / "nas")
    by = {"p1.png": "twice", "p3.png": "twice"}
    names = renamed(rows_of(folder), lambda name: f"{by.get(name, 'disk')}/{name}")
    (folder / "captions.csv").write_text(written(names))
    for name in (".trash/p9.png", "@eaDir/p0.png/thumb.jpg", "__MACOSX/._p0.png"):
        tiny.picture(folder / "images" / name.replace("._", "._x"))
    (folder / "images" / "IMG_1.CR3").write_bytes(b"raw")
    data = load(folder)
    assert data.report.counts["images"] == 6
    assert [(p.kind, p.where) for p in data.report.excluded] == [
        (".cr3 (not read here: save as JPEG)", "IMG_1.CR3")]


def test_two_pictures_that_change_places_are_other_data(folder):
    for number in (0, 2):
        path = folder / "images" / f"p{number}.png"
        path.write_bytes(path.read_bytes().ljust(4000, b"\0"))
    before, one, other = load(folder), *(folder / "images" / f"p{n}.png" for n in (0, 2))
    os.utime(one)
    assert load(folder).fingerprint == before.fingerprint
    a, b = one.read_bytes(), other.read_bytes()
    one.write_bytes(b), other.write_bytes(a)
    after = load(folder)
    assert after.fingerprint != before.fingerprint and after.content != before.content
    assert after.sha256["p0.png"] == before.sha256["p2.png"]
