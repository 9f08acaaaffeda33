import os
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.data import load_dataset, precomputed
from itr_study.data.base import DataError
from itr_study.data.precomputed import read_captions
from itr_study.evaluation.pointing import region_boxes
from itr_study.features.images import open_picture
from tests.data import tiny


def load(folder, name="coco", **options):
    return load_dataset(name, folder, features="precomputed",
                        cache=Path(folder).parent / "checks", **options)


@pytest.fixture
def folder(tmp_path):
    return tiny.precomputed(tmp_path)


def change(path, edit):
    features = np.load(path)
    features = edit(features)
    np.save(path, features)


def test_reads_features_captions_and_ids(folder):
    data = load(folder)
    dev = data.splits["dev"]
    assert dev.image_ids == ("100", "101", "102") and dev.text_ids[3] == "dev#3"
    assert dev.texts[3] == "Text 1 of dev 1 ." and dev.image_of_text.tolist() == [0, 0, 1, 1, 2, 2]
    regions = data.features["given"](dev)
    np.testing.assert_array_equal(regions.features, np.load(folder / "dev_ims.npy"))
    assert regions.mask.shape == (3, 4) and regions.mask.all()
    base = regions.features
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)  # never loaded whole
    assert not data.has_pictures and data.open_image("100").size == (224, 224)  # a card
    with pytest.raises(DataError, match="coco has features and no pictures"):
        open_picture(data, "100")


def test_pictures_are_found_by_the_names_of_coco_2017_and_ids_that_end_as_files(folder):
    ids = [f"{number}.jpg" for number in (7, 7, 8, 8, 9, 9)]
    (folder / "test_ids.txt").write_text("\n".join(ids) + "\n")
    for number in (*range(100, 103), 8, 9):
        tiny.picture(folder / "images" / f"{number:012d}.jpg")
    tiny.picture(folder / "images" / "101.jpg", seed=1)  # the very name comes first
    data = load(folder)
    assert data.open_image("101").tobytes() != data.open_image("100").tobytes()
    assert data.open_image("8.jpg").size == data.open_image("100").size == (32, 24)
    (folder / "test_ids.txt").write_text("\n".join(["007.jpg"] * 2 + ids[2:]) + "\n")
    for name in ("007.jpg", "7.jpg"):
        tiny.picture(folder / "images" / name)
    assert load(folder).open_image.args[0]["007.jpg"].name == "007.jpg"
    assert ("pictures missing", "images") in {(p.kind, p.where) for p in data.report.notes}


def test_ids_of_captions_in_place_of_images_are_noted(folder):
    change(folder / "test_ims.npy", lambda features: np.repeat(features, 2, axis=0))
    (folder / "test_ids.txt").write_text("".join(f"x{n}\n" for n in range(6)))
    notes = [p.detail for p in load(folder).report.notes if p.kind == "equal rows"]
    assert notes[0].endswith("each line of ids must name an image, not a caption")
    with pytest.raises(ValueError, match="restval=False goes with the JSON.*features=None"):
        load(folder, restval=False)
    with pytest.raises(ValueError, match="splits of dataset 'coco' must be .*, got 5"):
        load(folder, splits=5)


def write_boxes(folder, repeat=1, boxes=None):
    """Boxes of 4 regions in pictures of 200 x 100, the last one padding."""
    boxes = np.array([[0, 0, 50, 100], [50, 0, 200, 50], [0, 0, 200, 100.5], [0, 0, 0, 0]],
                     np.float32) if boxes is None else boxes
    for split in ("train", "dev", "test"):
        np.save(folder / f"{split}_boxes.npy", np.repeat(boxes[None], 3 * repeat, axis=0))
        np.save(folder / f"{split}_img_sizes.npy", np.repeat([[200, 100]], 3 * repeat, axis=0))


@pytest.mark.parametrize("repeat", [1, 2])
def test_boxes_beside_the_features_say_where_regions_lie(repeat, tmp_path):
    folder = tiny.precomputed(tmp_path, repeat=repeat)
    before = load(folder).fingerprint
    write_boxes(folder, repeat)
    data = load(folder)
    assert data.fingerprint == before  # models do not read them
    expected = [[0, 0, 0.25, 1], [0.25, 0, 1, 0.5], [0, 0, 1, 1], [np.nan] * 4]
    np.testing.assert_array_equal(data.places(data.splits["dev"]), [expected] * 3)
    places = region_boxes(data, SimpleNamespace(
        image_encoders=(), inputs=SimpleNamespace(pixels=0)), data.splits["dev"])
    np.testing.assert_array_equal(places(2, 4), expected)


@pytest.mark.parametrize("boxes, told", [
    (np.full((4, 4), 150, np.float32), r"row 0 ends .* outside its picture of \[200.0, 100.0\]"),
    (np.full((4, 4), np.nan, np.float32), "row 0 ends .* lies outside"),
    (np.tile(np.float32([50, 10, 30, 20]), (4, 1)), "row 0 ends before it begins.*left, top, rig"),
    (np.full((4, 4), 0.5, np.float32), "train_boxes.npy has fractions of the pictures"),
    (np.zeros((3, 4), np.float32), r"train_boxes.npy \(3, 3, 4\) .* of \(3, 4, 5\)")])
def test_boxes_that_cannot_be_are_refused(boxes, told, folder):
    write_boxes(folder, boxes=boxes)
    with pytest.raises(DataError, match=told):
        load(folder)


def test_boxes_need_the_sizes_of_pictures(folder):
    write_boxes(folder)
    (folder / "dev_img_sizes.npy").unlink()
    with pytest.raises(DataError, match="dev_img_sizes.npy is missing"):
        load(folder)
    (folder / "dev_boxes.npy").unlink()
    data = load(folder)
    assert data.places is None
    assert ("no boxes", "dev", "so boxes of other splits are not used") in data.report.notes


def test_pictures_beside_are_found_by_id_or_as_coco_names_them(folder):
    for name in ("100", "COCO_val2014_000000000101"):
        tiny.picture(folder / "images" / f"{name}.jpg")
    data = load(folder)
    assert [data.open_image(image).size for image in data.splits["dev"].image_ids] == [
        (32, 24), (32, 24), (224, 224)]
    assert not data.has_pictures
    card, other = (np.asarray(data.open_image(image)) for image in ("102", "200"))
    assert (card != other).any()  # each has its id and caption
    assert data.open_image.args[1]["102"] == "Text 0 of dev 2 ."  # the first, as in lists


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("texts", [1, 2, 3])
def test_repeated_rows_are_collapsed(tmp_path, texts, with_ids):
    folder = tiny.precomputed(tmp_path, repeat=texts, texts=texts)
    single = tiny.precomputed(tmp_path / "single", repeat=1, texts=texts)
    if not with_ids:
        for path in folder.glob("*_ids.txt"):
            path.unlink()
    data = load(folder)
    for name, split in data.splits.items():
        assert len(split.image_ids) == 3 and len(split.texts) == 3 * texts
        np.testing.assert_array_equal(data.features["given"](split).features,
                                      np.load(single / f"{name}_ims.npy"))


@pytest.mark.parametrize("with_ids", [True, False])
def test_rows_that_only_seem_repeated_are_refused(tmp_path, with_ids):
    folder = tiny.precomputed(tmp_path, repeat=2)

    def spoil(features):
        features[5, 0, 4] += 1
        return features

    change(folder / "test_ims.npy", spoil)
    if not with_ids:
        (folder / "test_ids.txt").unlink()
    with pytest.raises(DataError, match="rows are not repeated: test_ims.npy: rows 4 to 5"):
        load(folder)


def test_ids_per_image_or_none(folder):
    whole = load(folder)
    for path in folder.glob("*_ids.txt"):
        path.write_text("".join(f"{i}\n" for i in dict.fromkeys(path.read_text().split())))
    assert load(folder).fingerprint == whole.fingerprint
    for path in folder.glob("*_ids.txt"):
        path.unlink()
    data = load(folder)
    assert data.splits["test"].image_ids == ("test_0", "test_1", "test_2")
    assert data.splits["test"].image_of_text.tolist() == [0, 0, 1, 1, 2, 2]


def test_testall_is_preferred_and_pooled_features_are_one_region(folder):
    for path in list(folder.glob("test_*")):
        path.rename(path.with_name(path.name.replace("test", "testall")))
    for path in folder.glob("*_ims.npy"):
        change(path, lambda features: features[:, 0])
    data = load(folder)
    assert data.features["given"](data.splits["test"]).features.shape == (3, 1, 5)


def test_two_splits_of_one_file_are_noticed(folder):
    assert not load(folder).report.notes
    (folder / "test_ims.npy").write_bytes((folder / "dev_ims.npy").read_bytes())
    note, = load(folder).report.notes
    assert (note.kind, note.where) == ("splits alike", "features")


def test_images_may_have_different_numbers_of_captions(folder):
    tiny.add_line(folder / "train_caps.txt", "One more .")
    tiny.add_line(folder / "train_ids.txt", "2")
    assert load(folder).splits["train"].image_of_text.tolist() == [0, 0, 1, 1, 2, 2, 2]


def test_a_part_of_a_split(tmp_path):
    data = load(tiny.precomputed(tmp_path, repeat=2))
    whole = data.splits["test"]
    part = replace(whole, image_ids=whole.image_ids[::-2])
    np.testing.assert_array_equal(data.features["given"](part).features,
                                  data.features["given"](whole).features[::-2])


def nan(features):
    features[1, 2, 3] = np.nan
    return features


@pytest.mark.parametrize("edit, message", [
    (nan, "NaN or infinite features: dev_ims.npy: first in row 1"),
    (lambda f: f * np.inf, "NaN or infinite features"),
    (lambda f: f[:, :2], r"wrong feature shape: all splits.*train \(4, 5\), dev \(2, 5\)"),
    (lambda f: f[:, :, :2], "wrong feature shape: all splits"),
    (lambda f: f[0, 0], r"wrong feature shape \(5,\), expected"),
    (lambda f: f[:0], r"wrong feature shape \(0, 4, 5\)"),
    (lambda f: f.astype(np.int64), "must be floating point, got int64"),
    (lambda f: f[:2], "dev_ims.npy has 2 rows for 3 images with 6 captions"),
])
def test_wrong_features(folder, edit, message, monkeypatch):
    monkeypatch.setattr(precomputed, "BLOCK", 1)  # of several blocks the second is wrong
    change(folder / "dev_ims.npy", edit)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_bad_features_are_found_again_at_the_next_load(folder):
    load(folder)
    change(folder / "dev_ims.npy", nan)
    for _ in range(2):
        with pytest.raises(DataError, match="NaN"):
            load(folder)


def test_pickles_are_never_read(folder):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "exploded"),))

    (folder / "dev_ims.npy").write_bytes(pickle.dumps(Bomb()))
    np.save(folder / "test_ims.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="2 problems(.|\n)*pickled objects are never read"):
        load(folder)
    assert not (folder / "exploded").exists()


def test_all_problems_at_once(folder):
    tiny.truncate(folder / "train_ims.npy")
    (folder / "dev_ims.npy").write_bytes(b"")
    (folder / "test_caps.txt").unlink()
    with pytest.raises(DataError) as caught:
        load(folder)
    for part in ("train_ims.npy cannot be read", "dev_ims.npy cannot be read",
                 "test_caps.txt is missing", "3 problems"):
        assert part in str(caught.value), part


@pytest.mark.parametrize("spoil, message", [
    (lambda f: (f / "dev_caps.txt").write_text("One .\n"), "dev_ids.txt has 6 lines for 1 capt"),
    (lambda f: (f / "dev_caps.txt").write_text("a\n\nb\nc\nd\ne\n"), "empty caption: dev#1"),
    (lambda f: (f / "dev_ids.txt").write_text("1\n2\n1\n2\n3\n3\n"), "order: dev_ids.txt:3: capt"),
    (lambda f: (f / "dev_ids.txt").write_text("0\n0\n1\n1\n9\n9\n"), "overlapping splits: 0: in"),
    (lambda f: (f / "dev_ids.txt").write_text("1\n2\n3\n4\n5\n6\n"), "3 rows for 6 images"),
    (lambda f: (f / "dev_ims.npy").unlink(), "dev_ims.npy or val_ims.npy is missing"),
])
def test_wrong_texts_and_ids(folder, spoil, message):
    spoil(folder)
    with pytest.raises(DataError, match=message):
        load(folder)


def test_captions_that_cannot_be_shared_out(folder):
    (folder / "dev_ids.txt").unlink()
    tiny.add_line(folder / "dev_caps.txt", "One more .")
    with pytest.raises(DataError, match="7 captions cannot be shared out over 3 rows"):
        load(folder)


def test_fingerprint_sees_other_features_of_the_same_size(folder):
    before = load(folder).fingerprint
    change(folder / "dev_ims.npy", lambda features: features + 1)
    assert load(folder).fingerprint != before


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A split of 300 images, so that a sample of rows would be another thing than all of them."""
    folder = tiny.precomputed(tmp_path_factory.mktemp("large"))
    for name, rows in (("train", 300), ("dev", 3), ("test", 3)):
        np.save(folder / f"{name}_ims.npy", np.zeros((rows, 2, 3), np.float16))
    (folder / "train_caps.txt").write_text("".join(f"Text {n} .\n" for n in range(600)))
    (folder / "train_ids.txt").write_text("".join(f"t{n // 2}\n" for n in range(600)))
    return folder, load(folder).fingerprint


@settings(max_examples=25, deadline=None)
@given(st.tuples(st.integers(0, 299), st.integers(0, 1), st.integers(0, 2)),
       st.floats(-100, 100, width=16).filter(bool))
def test_every_number_of_the_features_counts(large, place, value):
    folder, before = large
    features = np.zeros((300, 2, 3), np.float16)
    features[place] = value
    stat = (folder / "train_ims.npy").stat()
    np.save(folder / "train_ims.npy", features)
    os.utime(folder / "train_ims.npy", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load(folder).fingerprint != before
    np.save(folder / "train_ims.npy", np.zeros((300, 2, 3), np.float16))
    assert load(folder).fingerprint == before


def test_features_are_hashed_once(folder, monkeypatch):
    before = load(folder).fingerprint
    monkeypatch.setattr(precomputed, "progress", None)
    assert load(folder).fingerprint == before


def without_ids(folder, per_image):
    for path in folder.glob("*_ids.txt"):
        ids = dict.fromkeys(path.read_text().split())
        path.unlink()
        if per_image:
            path.write_text("".join(f"{i}\n" for i in ids))


@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize("split, rows", [("train", 2), ("dev", 1), ("test", 2)])
def test_captions_are_not_shared_out_over_a_part_of_the_images(tmp_path, split, rows, per_image):
    folder = tiny.precomputed(tmp_path, texts=4)
    without_ids(folder, per_image)
    change(folder / f"{split}_ims.npy", lambda features: features[:rows])
    if per_image:
        ids = (folder / f"{split}_ids.txt").read_text().split()[:rows]
        (folder / f"{split}_ids.txt").write_text("\n".join(ids) + "\n")
    with pytest.raises(DataError, match=f"captions an image: all splits:.*{split} {12 // rows} "):
        load(folder)
    (note,) = load(folder, splits=tuple({"train", "dev", "test"} - {split})).report.notes
    assert "the published files have 5" in note.detail


def test_five_captions_an_image_need_no_word(tmp_path):
    folder = tiny.precomputed(tmp_path, texts=5)
    without_ids(folder, per_image=False)
    assert load(folder).report.notes == []


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("each", ["caption", "image", "number"])
@pytest.mark.parametrize("repeat", [1, 2])
def test_ids_that_count_rows_are_no_names(tmp_path, first, each, repeat):
    """NCR numbers rows from 0 in every split, others images or captions."""
    folder = tiny.precomputed(tmp_path, repeat=repeat)
    named = load(tiny.precomputed(tmp_path / "named"))
    for path in folder.glob("*_ids.txt"):
        numbers = {"caption": range(6), "image": range(3), "number": [n // 2 for n in range(6)]}
        path.write_text("".join(f"{first + n}\n" for n in numbers[each]))
    data = load(folder)
    assert len({i for split in data.splits.values() for i in split.image_ids}) == 9
    for name, split in data.splits.items():
        assert split.image_of_text.tolist() == named.splits[name].image_of_text.tolist()
        np.testing.assert_array_equal(data.features["given"](split).features,
                                      named.features["given"](named.splits[name]).features)


def test_pictures_beside_the_features_are_a_part_of_the_data(folder):
    alone = load(folder)
    for number, image in enumerate(i for s in alone.splits.values() for i in s.image_ids):
        tiny.picture(folder / "images" / f"{image}.bmp", seed=number)
    data = load(folder)
    assert data.has_pictures and data.content != alone.content
    tiny.picture(folder / "images" / "100.bmp", seed=77)
    assert load(folder).content != data.content
    tiny.truncate(folder / "images" / "100.bmp")
    broken = load(folder)
    assert broken.content == alone.content  # none of them can be trained on
    assert not broken.has_pictures and [p.where for p in broken.report.notes] == ["100"]
    (folder / "images" / "100.bmp").unlink()
    (note,) = load(folder).report.notes
    assert note.kind == "pictures missing" and note.detail.startswith("1 of ")


def test_published_features_are_found_without_the_option(folder):
    data = load_dataset("coco", folder, cache=folder.parent / "checks")
    assert data.fingerprint == load(folder).fingerprint and list(data.features) == ["given"]


def test_captions_alone(folder):
    (folder / "dev_ims.npy").unlink()
    split = read_captions(folder, "dev")
    assert split.image_ids == ("100", "101", "102") and len(split.texts) == 6
    (folder / "dev_ids.txt").unlink()
    with pytest.raises(DataError, match="dev_ids.txt is missing"):
        read_captions(folder, "dev")


@pytest.mark.parametrize("name, split, images, texts", [
    ("coco5k", "test", 5000, 25000), ("coco5k", "dev", 1000, 5000),
    ("flickr30k", "test", 1000, 5000), ("flickr30k", "dev", 1014, 5070)])
def test_real_captions(name, split, images, texts):
    root = os.environ.get("ITR_DATA")
    if not root:
        pytest.skip(f"real captions: set ITR_DATA to the folder that holds {name}/")
    read = read_captions(Path(root) / name, split)
    assert (len(read.image_ids), len(read.texts)) == (images, texts)
