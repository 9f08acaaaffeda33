import pytest

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
                 "columns image", "9 problems|10 problems"):
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
    with pytest.raises(DataError, match="columns image, text .and split., found picture;caption"):
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
