import numpy as np
import pytest

from itr_study.data import cub, load_dataset
from itr_study.data.base import DataError
from itr_study.features.dataset import image_classes
from tests.data import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.cub(tmp_path)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """As if these were the numbers published."""
    monkeypatch.setattr(cub, "IMAGES", 12)
    monkeypatch.setattr(cub, "CLASSES", 6)
    monkeypatch.setattr(cub, "SENTENCES", 2)
    monkeypatch.setattr(cub, "SPECIES", {"classes": {"train": 2, "dev": 2, "test": 2},
                                         "images": {"train": 4, "test": 2}})


def load(folder, **options):
    return load_dataset("cub", folder, cache=folder.parent / "checks", **options)


def problems(folder, **options):
    with pytest.raises(DataError) as caught:
        load(folder, **options)
    return str(caught.value)


def test_reads_species_by_split_with_pictures_and_sentences(folder):
    data = load(folder.parent)
    assert {name: split.image_ids for name, split in data.splits.items()} == {
        "train": ("001.Crow/Crow_0.jpg", "001.Crow/Crow_1.jpg", "002.Wren/Wren_0.jpg",
                  "002.Wren/Wren_1.jpg"),
        "dev": ("003.Gull/Gull_0.jpg", "003.Gull/Gull_1.jpg", "004.Tern/Tern_0.jpg",
                "004.Tern/Tern_1.jpg"),
        "test": ("005.Jay/Jay_0.jpg", "005.Jay/Jay_1.jpg", "006.Auk/Auk_0.jpg",
                 "006.Auk/Auk_1.jpg")}
    test = data.splits["test"]
    assert test.text_ids[:3] == ("005.Jay/Jay_0.jpg#0", "005.Jay/Jay_0.jpg#1",
                                 "005.Jay/Jay_1.jpg#0")
    assert test.texts[2] == "sentence 0 of 005.Jay/Jay_1 ."
    assert test.image_of_text.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert data.open_image("006.Auk/Auk_1.jpg").size == (32, 24)
    assert data.report.counts == {"images": 12, "texts": 24, "classes": 6}
    assert data.seen_by == () and "CVPR 2016" in data.terms and not data.report.notes


def test_classes_are_numbers_that_all_splits_share(folder):
    data = load(folder)
    assert data.classes["003.Gull/Gull_1.jpg"] == "003.Gull" and len(data.classes) == 12
    found = {name: image_classes(data, split) for name, split in data.splits.items()}
    assert found["train"].tolist() == [0, 0, 1, 1] and found["test"].tolist() == [4, 4, 5, 5]
    assert found["dev"].dtype == np.int64


def test_what_lies_in_the_archive_of_the_sentences_is_found_there(tmp_path):
    data = load(tiny.cub(tmp_path, "cvpr2016_cub"))
    assert data.splits["dev"].image_ids[0] == "003.Gull/Gull_0.jpg"


def test_hidden_files_that_a_mac_leaves_are_no_texts(folder):
    (folder / "text_c10" / "001.Crow" / "._Crow_0.txt").write_bytes(b"\x00\xff")
    assert load(folder).report.counts["texts"] == 24


def test_empty_lines_say_nothing(folder):
    for name in (*(f"CUB_200_2011/{table}" for table in cub.TABLES), "trainclasses.txt"):
        tiny.add_line(folder / name, "  ")
    assert load(folder).report.counts == {"images": 12, "texts": 24, "classes": 6}


def test_lists_beside_the_archive_are_taken_before_those_inside(tmp_path):
    """The papers' lists are Xian's; and of two sets of lists none is mixed."""
    folder = tiny.cub(tmp_path, "cvpr2016_cub")
    (folder / "testclasses.txt").write_text("001.Crow\n")
    assert "missing: trainclasses1.txt or trainclasses.txt" in problems(folder)
    (folder / "trainclasses1.txt").write_text("005.Jay\n006.Auk\n")
    (folder / "valclasses1.txt").write_text("002.Wren\n")
    data = load(folder, as_published=False)
    assert data.splits["test"].image_ids == ("001.Crow/Crow_0.jpg", "001.Crow/Crow_1.jpg")
    assert data.splits["train"].image_ids[0] == "005.Jay/Jay_0.jpg"
    assert [(p.kind, p.where) for p in data.report.excluded] == [
        ("in no split", "003.Gull"), ("in no split", "004.Tern")]


def test_dev_may_be_pictures_of_the_species_of_train(folder):
    """150 species train, as in published numbers; a picture of a test species stays in test."""
    data = load(folder, dev="images")
    split = {name: [image.rpartition("/")[2] for image in s.image_ids]
             for name, s in data.splits.items()}
    assert split == {"train": ["Crow_0.jpg", "Wren_0.jpg", "Gull_0.jpg", "Tern_0.jpg"],
                     "dev": ["Crow_1.jpg", "Wren_1.jpg", "Gull_1.jpg", "Tern_1.jpg"],
                     "test": ["Jay_0.jpg", "Jay_1.jpg", "Auk_0.jpg", "Auk_1.jpg"]}
    assert [(p.kind, p.where) for p in data.report.notes] == [
        ("listed for dev, stays in test", "005.Jay/Jay_1.jpg"),
        ("listed for dev, stays in test", "006.Auk/Auk_1.jpg")]
    assert data.fingerprint != load(folder).fingerprint
    tiny.add_line(folder / "seen_test_images.txt", "001.Crow/Crow_9.jpg")
    assert "unknown image: 001.Crow/Crow_9.jpg: dev lists it" in problems(folder, dev="images")
    with pytest.raises(ValueError, match="dev must be one of classes, images"):
        load(folder, dev="species")


def test_all_missing_files_at_once(folder, tmp_path):
    for name in ("CUB_200_2011/classes.txt", "testclasses.txt", "valclasses.txt"):
        (folder / name).unlink()
    (folder / "text_c10").rename(folder / "texts")
    told = problems(folder)
    for part in ("5 problems", "missing: CUB_200_2011/classes.txt: not in",
                 "missing: text_c10 or cvpr2016_cub/text_c10",
                 "missing: cvpr2016_cub/testclasses.txt",
                 "missing: cvpr2016_cub/valclasses1.txt or cvpr2016_cub/valclasses.txt",
                 "It takes CUB_200_2011/"):
        assert part in told, part
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="holds no cub/.*It takes CUB_200_2011/"):
        load(tmp_path / "other")


def test_all_problems_at_once(folder):
    tables, texts = folder / "CUB_200_2011", folder / "text_c10"
    for line in ("13 007.Owl/Owl_0.jpg", "14", "3 001.Crow/Crow_7.jpg", "15 001.Crow/Crow_0.jpg"):
        tiny.add_line(tables / "images.txt", line)
    labels = (tables / "image_class_labels.txt").read_text().replace("\n2 1\n", "\n2 6\n")
    (tables / "image_class_labels.txt").write_text(labels + "15 1\n99 1\n")
    tiny.add_line(folder / "trainclasses.txt", "005.Jay")
    tiny.add_line(folder / "valclasses.txt", "003.Gull")
    tiny.add_line(folder / "testclasses.txt", "009.Moa")
    (texts / "002.Wren" / "Wren_0.txt").unlink()
    (texts / "002.Wren" / "Wren_1.txt").write_bytes(b"a wren\nanother \xff\n")
    (texts / "003.Gull" / "Gull_0.txt").write_text("only one\n\n  \n")
    (texts / "003.Gull" / "Gull_9.txt").write_text("of nothing\n")
    tiny.truncate(tables / "images" / "004.Tern" / "Tern_0.jpg")
    (tables / "images" / "004.Tern" / "Tern_1.jpg").unlink()
    told = problems(folder)
    for part in ("malformed line: images.txt:14: expected two words: '14'",
                 "malformed line: images.txt:15: its number stands above",
                 "duplicate image id: 001.Crow/Crow_0.jpg: twice in images.txt",
                 "unknown class: 007.Owl/Owl_0.jpg: image_class_labels.txt gives it no class",
                 "unknown class: 001.Crow/Crow_1.jpg: it is labelled 006.Auk",
                 "label of an unknown image: 99",
                 "overlapping class splits: 005.Jay: listed in train and in test",
                 "overlapping class splits: 003.Gull: listed in dev and in dev",
                 "unknown class: 009.Moa: test lists it",
                 "image without captions: 002.Wren/Wren_0.jpg",
                 "unreadable text: text_c10/002.Wren/Wren_1.txt",
                 "text of an unknown picture: text_c10/003.Gull/Gull_9.txt",
                 "not as published: images.txt: expected 12 pictures, found 13",
                 "not as published: images.txt: expected 6 classes, found 7",
                 "not as published: the list of train: expected 2 classes, found 3",
                 "not as published: 003.Gull/Gull_0.jpg: expected 2 sentences, found 1",
                 "truncated picture: 004.Tern/Tern_0.jpg", "missing picture: 004.Tern/Tern_1.jpg",
                 "skip_bad=True", "as_published=False"):
        assert part in told, part


def test_a_label_that_classes_txt_lacks(folder):
    labels = folder / "CUB_200_2011" / "image_class_labels.txt"
    labels.write_text(labels.read_text().replace("\n12 6\n", "\n12 8\n"))
    assert "006.Auk/Auk_1.jpg: image_class_labels.txt gives it class 8, which" in problems(folder)


def test_other_numbers_are_noted_where_they_are_wanted(folder, monkeypatch):
    monkeypatch.setattr(cub, "SENTENCES", 10)
    assert "expected 10 sentences, found 2" in problems(folder)
    data = load(folder, as_published=False)
    assert len(data.report.notes) == 12
    assert {p.kind for p in data.report.notes} == {"not as published"}


def test_a_list_of_no_classes_leaves_a_split_empty(folder):
    (folder / "valclasses.txt").write_text("\n")
    assert "empty split: dev" in problems(folder, as_published=False)


def test_skip_bad(folder):
    (folder / "CUB_200_2011" / "images" / "005.Jay" / "Jay_0.jpg").write_bytes(b"")
    data = load(folder, skip_bad=True)
    assert data.splits["test"].image_ids[0] == "005.Jay/Jay_1.jpg"
    assert image_classes(data, data.splits["test"]).tolist() == [4, 5, 5]
    assert [(p.kind, p.where) for p in data.report.excluded] == [
        ("empty picture", "005.Jay/Jay_0.jpg")]
