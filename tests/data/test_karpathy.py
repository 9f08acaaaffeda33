import copy
import json
from pathlib import Path

import pytest

from itr_study.data import load_dataset
from itr_study.data.base import DataError
from tests.data import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.karpathy(tmp_path)


def load(folder, name="coco", **options):
    return load_dataset(name, folder, cache=Path(folder).parent / "checks", **options)


def change(folder, edit):
    records = json.loads((folder / "dataset_coco.json").read_text())["images"]
    edit(records)
    tiny.save_json(folder, records)


def test_reads_splits_in_order_restval_joins_train(folder):
    data = load(folder)
    assert {n: s.image_ids for n, s in data.splits.items()} == {
        "train": ("1000", "1001", "1002"), "dev": ("1003",), "test": ("1004",)}
    assert data.splits["test"].text_ids == ("40", "41")
    assert data.splits["test"].texts == ("Text 0 of 4 .", "Text 1 of 4 .")
    assert data.open_image("1004").size == (32, 24)
    assert data.name == "coco" and "minilm" in data.seen_by and "COCO" in data.terms


def test_restval_can_be_left_out_and_is_reported(folder):
    data = load(folder, restval=False)
    assert data.splits["train"].image_ids == ("1000", "1001")
    assert [(p.kind, p.where) for p in data.report.excluded] == [("in no split", "restval")]
    assert data.fingerprint != load(folder).fingerprint


def test_some_splits_only(folder):
    data = load(folder, splits=("test",))
    assert list(data.splits) == ["test"] and data.splits["test"].image_ids == ("1004",)
    with pytest.raises(ValueError, match="splits must be some of train, dev, test"):
        load(folder, splits=("val",))


@pytest.mark.parametrize(("name", "other"), [("coco", "coco5k"), ("flickr30k", "f30k_precomp")])
def test_the_folder_below_the_root_may_have_its_other_name(tmp_path, name, other):
    tiny.karpathy(tmp_path, name).rename(tmp_path / other)
    assert load(tmp_path, name).name == name


def test_flickr30k_uses_file_names_as_ids(tmp_path):
    folder = tiny.karpathy(tmp_path, "flickr30k")
    records = json.loads((folder / "dataset_flickr30k.json").read_text())["images"]
    for record in records:
        del record["cocoid"], record["filepath"]
    tiny.save_json(folder, records, "flickr30k")
    for path in list((folder / "images" / "val2014").iterdir()):
        path.rename(folder / "images" / path.name)
    data = load(folder, "flickr30k")
    assert data.splits["dev"].image_ids == ("COCO_003.jpg",) and "TACL" in data.terms


def test_all_problems_at_once(folder):
    def spoil(records):
        records[1]["cocoid"] = 1000
        records[2]["sentids"].reverse()
        records[3]["split"] = "validation"
        records[4]["sentences"], records[4]["sentids"] = [], []
        records.append({"split": "train"})
        records.append({"filename": "x.jpg", "split": "train", "sentences": [{"raw": "a"}]})
        records.append({"filename": "y.jpg", "split": "test"})

    change(folder, spoil)
    tiny.truncate(folder / "images" / "val2014" / "COCO_001.jpg")
    (folder / "images" / "val2014" / "COCO_004.jpg").unlink()
    with pytest.raises(DataError) as caught:
        load(folder)
    for part in ("duplicate image id: 1000", "COCO_002.jpg: \"sentids\" and \"sentences\" differ",
                 "split 'validation' is none of train", "image without captions: 1004",
                 'images[5]: no "filename"', 'x.jpg: a sentence lacks "raw" or "sentid"',
                 'y.jpg: no list "sentences"', "empty split: dev", "truncated picture",
                 "missing picture: 1004", "skip_bad=True"):
        assert part in str(caught.value), part


def test_overlapping_splits_and_duplicate_captions(folder):
    def spoil(records):
        records[4]["cocoid"] = 1003
        records[0]["sentences"][0]["sentid"] = records[0]["sentids"][0] = 11

    change(folder, spoil)
    with pytest.raises(DataError, match="overlapping splits: 1003: in dev and in test(.|\n)*"
                                        "duplicate caption id: 11"):
        load(folder)


def test_skip_bad(folder):
    (folder / "images" / "val2014" / "COCO_001.jpg").write_bytes(b"")
    assert load(folder, skip_bad=True).splits["train"].image_ids == ("1000", "1002")


def test_wrong_or_missing_files(folder, tmp_path):
    path = folder / "dataset_coco.json"
    with pytest.raises(DataError, match="is of data set 'coco', not 'flickr30k'"):
        plain = tmp_path / "plain"
        plain.mkdir()
        (plain / "dataset.json").write_text(path.read_text())
        load(plain, "flickr30k")
    with pytest.raises(DataError, match="looks like the folder of coco, not of flickr30k"):
        path.rename(folder / "dataset.json")
        load(folder, "flickr30k")
    (folder / "dataset.json").rename(path)
    path.write_text('{"images": 3}')
    with pytest.raises(DataError, match='an object with a list "images"'):
        load(folder)
    path.write_text('{"images": [')
    with pytest.raises(DataError, match="not valid JSON"):
        load(folder)
    path.unlink()
    with pytest.raises(DataError, match="holds neither dataset_coco.json.*of published features"):
        load(folder)
    with pytest.raises(ValueError, match='features must be None or "precomputed"'):
        load(folder, features="pixels")


USED = [("filename",), ("filepath",), ("split",), ("cocoid",), ("sentids",), ("sentences",),
        ("sentences", 0), ("sentences", 0, "raw"), ("sentences", 0, "sentid"), ("sentids", 0)]


@pytest.mark.parametrize("value", [None, 1, -2.5, True, [], {}, "", "\0", "\ud83d", "x" * 400, "..",
                                   [None], {"raw": 1}], ids=repr)
def test_any_field_of_another_type_is_refused_or_read(folder, value):
    """Whatever stands where something else belongs, nothing but a DataError is raised."""
    sound = json.loads((folder / "dataset_coco.json").read_text())["images"]
    for number, path in ((n, path) for n in (0, 4) for path in USED):
        records = copy.deepcopy(sound)
        *above, last = path
        place = records[number]
        for key in above:
            place = place[key]
        place[last] = value
        tiny.save_json(folder, records)
        try:
            texts = [text for split in load(folder).splits.values() for text in split.texts]
        except DataError:
            continue
        assert all(isinstance(text, str) and text.strip() for text in texts), path


@pytest.mark.parametrize("content", ['{"images": [' * 100_000,
                                     '{"images": [{"cocoid": 1' + "0" * 5000, "null", "3",
                                     '{"images": [[]]}', '{"images": null}'])
def test_json_that_is_none_of_this_kind_is_refused(folder, content):
    (folder / "dataset_coco.json").write_text(content)
    with pytest.raises(DataError, match="dataset_coco.json"):
        load(folder)


def test_null_is_no_folder_and_a_number_is_no_name(folder):
    def without(records):
        for record in records:
            record["filepath"] = None

    change(folder, without)
    for path in list((folder / "images" / "val2014").iterdir()):
        path.rename(folder / "images" / path.name)
    assert load(folder).splits["test"].image_ids == ("1004",)
    change(folder, lambda records: records[3].update(cocoid=None))
    change(folder, lambda records: records[4]["sentences"][0].update(sentid=None))
    with pytest.raises(DataError, match='COCO_003.jpg: "cocoid" is None, expected a number(.|\n)*'
                                        'COCO_004.jpg: a sentence lacks "raw" or "sentid"'):
        load(folder)
