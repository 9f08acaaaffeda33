import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from itr_study.data import flickr8k, load_dataset
from itr_study.data.assemble import Caption, digest_of, fingerprint
from itr_study.data.base import DataError, Judgements
from itr_study.data.caption_noise import SHARES
from itr_study.data.flickr8k import PAIRS, SPLITS, differences, digest
from itr_study.files.paths import evidence_folder
from tests.data import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.flickr8k(tmp_path)


def load(folder, **options):
    return load_dataset("flickr8k", folder, cache=folder.parent / "checks",
                        **{"as_published": False, **options})


def test_reads_what_is_there(folder):
    data = load(folder)
    train = data.splits["train"]
    assert train.image_ids == ("train0.jpg", "train1.jpg")
    assert train.text_ids == tuple(f"train{i}.jpg#{k}" for i, k in
                                   [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)])
    assert train.texts[4] == "Caption 2 of train1.jpg ."
    assert train.image_of_text.tolist() == [0, 0, 1, 1, 1]  # never five assumed
    assert data.open_image("test1.jpg").mode == "RGB"
    assert data.open_image("test1.jpg").size == (32, 24)
    assert "minilm" in data.seen_by and "Hodosh" in data.terms
    assert [(p.kind, p.where) for p in data.report.excluded] == [("in no split", "extra.jpg")]
    assert data.report.counts["images"] == 7 and data.report.counts["texts"] == 16


def test_root_or_its_folder(folder):
    assert load(folder).fingerprint == load(folder.parent).fingerprint


def test_standard_archives_layout(folder):
    (folder / "images").rename(folder / "Flicker8k_Dataset")
    (folder / "Flickr8k_text").mkdir()
    for path in folder.glob("*.txt"):
        path.rename(folder / "Flickr8k_text" / path.name)
    assert load(folder).report.counts["images"] == 7


def test_explained_lines_are_left_out_and_reported(folder):
    tokens = folder / "Flickr8k.token.txt"
    before = load(folder).fingerprint
    tiny.add_line(tokens, "2258277193_586949ec62.jpg#1\tSome people looking out windows .")
    tiny.add_line(tokens, "2258277193_586949ec62.jpg.1#0\tpeople waiting for the subway")
    data = load(folder)
    assert Counter(p.kind for p in data.report.excluded) == {
        "in no split": 1, "caption of an unknown image": 1, "malformed name": 1}
    assert data.fingerprint == before


def test_all_problems_at_once(folder):
    (folder / "images" / "train0.jpg").unlink()
    (folder / "images" / "train1.jpg").write_bytes(b"")
    (folder / "images" / "dev0.jpg").write_text("<html>404</html>")
    tiny.truncate(folder / "images" / "dev1.jpg")
    tiny.add_line(folder / "Flickr_8k.testImages.txt", "dev0.jpg")
    tiny.add_line(folder / "Flickr_8k.testImages.txt", "test0.jpg")
    tiny.add_line(folder / "Flickr_8k.testImages.txt", "none.jpg")
    tiny.add_line(folder / "Flickr8k.token.txt", "test0.jpg#0\tAgain .")
    tiny.add_line(folder / "Flickr8k.token.txt", "test0.jpg A line without a number")
    tiny.add_line(folder / "Flickr8k.token.txt", "test0.jpg#7\t ")
    tiny.add_line(folder / "Flickr8k.token.txt", "test0.jpg#8\tA d\0g .")
    with pytest.raises(DataError) as caught:
        load(folder)
    message = str(caught.value)
    for part in ("missing picture: train0.jpg", "empty picture: train1.jpg",
                 "not a picture: dev0.jpg", "truncated picture: dev1.jpg",
                 "overlapping splits: dev0.jpg: in dev and in test",
                 "duplicate image id: test0.jpg: 2 times in test",
                 "missing picture: none.jpg", "image without captions: none.jpg",
                 "duplicate caption id: test0.jpg#0", "empty caption: test0.jpg#7",
                 "damaged caption: test0.jpg#8: it holds a NUL byte",
                 "malformed line: Flickr8k.token.txt:18", "skip_bad=True", "Illinois"):
        assert part in message, part
    assert message.startswith("12 problems")


def test_a_part_is_refused_unless_it_is_asked_for(folder):
    with pytest.raises(DataError) as caught:
        load(folder, as_published=True)
    for part in ("Flickr_8k.trainImages.txt: expected the 6,000 train images, found 2\n",
                 "train1.jpg: expected the captions #0, #1, #2, #3, #4, found #0, #1, #2",
                 "give as_published=False"):
        assert part in str(caught.value), part
    notes = load(folder).report.notes
    assert notes and {p.kind for p in notes} == {"not as published"}


@pytest.fixture
def published(monkeypatch):
    """Small data, and the constants as if they had been published."""
    images = {split: [f"{split}{i}.jpg" for i in range(2)] for split in SPLITS}
    captions = [Caption(image, f"{image}#{k}", f"Text {k} of {image} .")
                for ids in images.values() for image in ids for k in range(5)]
    judged = {"expert": Judgements("expert", ("test0.jpg",), ("test1.jpg#0",), np.ones((1, 3)),
                                   np.array([False]), "c")}
    for split, ids in images.items():
        monkeypatch.setitem(SPLITS, split, (2, digest(ids)))
    monkeypatch.setattr(flickr8k, "CAPTIONS",
                        digest(f"{c.text_id}\t{c.text}" for c in captions))
    monkeypatch.setitem(PAIRS, "expert", 1)
    return images, captions, judged


def test_what_differs_from_the_published_data_is_said(published):
    images, captions, judged = published
    assert differences(*published) == []
    assert differences({s: ids[::-1] for s, ids in images.items()}, captions[::-1], judged) == []

    def found(images=images, captions=captions, judged=judged):
        return "\n".join(f"{p.where}: {p.detail}" for p in differences(images, captions, judged))

    swapped = found(images | {"dev": images["test"], "test": images["dev"]})
    assert "devImages.txt: expected the 2 dev images, found 2, those of test: were" in swapped
    assert "testImages.txt: expected the 2 test images, found 2, those of dev: were" in swapped
    assert "expected the 2 test images, found 1" in found(images | {"test": images["test"][:1]})
    assert "not all of them the same" in found(images | {"test": ["test0.jpg", "new.jpg"]})
    assert found(captions=captions[1:]).endswith("found #1, #2, #3, #4")
    sixth = Caption("dev0.jpg", "dev0.jpg#5", "A sixth .")
    assert found(captions=[*captions, sixth]).endswith("found #0, #1, #2, #3, #4, #5")
    first, second, *others = captions
    exchanged = [first._replace(text=second.text), second._replace(text=first.text), *others]
    assert found(captions=exchanged).startswith("Flickr8k.token.txt: a caption has other words")
    foreign = replace(judged["expert"], image_ids=("test0.jpg", "none.jpg"))
    assert found(judged={"expert": foreign}) == (
        "expert judgements: expected 1 pairs, found 2\n"
        "expert judgements: no split has the judged image none.jpg")


def test_empty_split(folder):
    (folder / "Flickr_8k.devImages.txt").write_text("\n")
    with pytest.raises(DataError, match="empty split: dev"):
        load(folder)


def test_token_file_that_is_empty_or_not_text(folder):
    tokens = folder / "Flickr8k.token.txt"
    tokens.write_bytes(b"")
    with pytest.raises(DataError, match="image without captions: train0.jpg"):
        load(folder)
    tokens.write_bytes(b"train0.jpg#0\t\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8 text .byte 13"):
        load(folder)


def test_missing_folders_and_files(folder, tmp_path):
    with pytest.raises(DataError, match="no folder was given.*Flickr8k.token.txt"):
        load_dataset("flickr8k")
    with pytest.raises(DataError, match="there is no folder"):
        load_dataset("flickr8k", tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="holds no flickr8k/.*on request"):
        load_dataset("flickr8k", tmp_path / "other")
    (folder / "Flickr_8k.testImages.txt").unlink()
    with pytest.raises(DataError, match="Flickr_8k.testImages.txt missing"):
        load(folder)
    shutil.rmtree(folder / "images")
    with pytest.raises(DataError, match="folder of the photographs missing: looked for images"):
        load(folder)


def test_skip_bad_leaves_undecodable_pictures_out(folder):
    tiny.truncate(folder / "images" / "dev1.jpg")
    with pytest.raises(DataError, match="1 problem in the data(.|\n)*truncated picture: dev1.jpg"):
        load(folder)
    data = load(folder, skip_bad=True)
    assert data.splits["dev"].image_ids == ("dev0.jpg",)
    assert data.splits["dev"].text_ids == ("dev0.jpg#0", "dev0.jpg#1")
    assert ("truncated picture", "dev1.jpg") in [p[:2] for p in data.report.excluded]
    (folder / "images" / "dev0.jpg").unlink()
    with pytest.raises(DataError, match="missing picture: dev0.jpg"):  # never skipped
        load(folder, skip_bad=True)


def test_fingerprint_follows_the_content_not_the_path(folder, tmp_path):
    before = load(folder).fingerprint
    moved = tmp_path / "elsewhere" / "flickr8k"
    shutil.copytree(folder, moved)
    assert load(moved).fingerprint == before
    tokens = moved / "Flickr8k.token.txt"
    tokens.write_text(tokens.read_text().replace("Caption 0 of dev1", "Caption 9 of dev1"))
    assert load(moved).fingerprint != before
    other = load(folder)
    (folder / "images" / "dev1.jpg").write_bytes((folder / "images" / "dev1.jpg").read_bytes()
                                                + b"one more")
    assert load(folder).fingerprint != other.fingerprint


def test_a_picture_of_the_same_size_is_another(folder):
    paths = [folder / "images" / f"{split}0.jpg" for split in ("train", "test")]
    contents = [path.read_bytes().ljust(9000, b"\0") for path in paths]
    prints = []
    for order in (contents, contents[::-1], contents):
        for path, content in zip(paths, order, strict=True):
            path.write_bytes(content)
        prints.append((load(folder).fingerprint, load(folder).content))
    assert prints[0] == prints[2] and not {*prints[0]} & {*prints[1]}


def test_published_pictures_keep_the_fingerprint_of_names_and_sizes(folder, monkeypatch):
    data = load(folder)
    files = [[image, (folder / "images" / image).stat().st_size]
             for split in data.splits.values() for image in split.image_ids]
    digest_now = digest_of([[sha] for sha in data.sha256.values()])
    monkeypatch.setitem(flickr8k.PHOTOGRAPHS, "nothing", digest_now)
    as_published = load(folder)
    assert as_published.published and not data.published
    assert as_published.fingerprint == fingerprint(data.splits, files) != data.fingerprint
    path = folder / "images" / "dev0.jpg"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert not load(folder, skip_bad=True).published


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    root = os.environ.get("ITR_DATA")
    if not root:
        pytest.skip("real Flickr8k: set ITR_DATA to the folder that holds flickr8k/")
    cache = tmp_path_factory.mktemp("checks")
    return load_dataset("flickr8k", root, cache=cache), Path(root), cache


def test_real_counts_are_exactly_the_known_ones(real):
    data, _, _ = real
    sizes = {name: (len(s.image_ids), len(s.texts)) for name, s in data.splits.items()}
    assert sizes == {"train": (6000, 30000), "dev": (1000, 5000), "test": (1000, 5000)}
    assert data.report.counts["images"] == 8091 and data.report.counts["texts"] == 40460
    assert Counter(p.kind for p in data.report.excluded) == {
        "in no split": 91, "caption of an unknown image": 4, "malformed name": 1}
    odd = [p.where for p in data.report.excluded if p.kind != "in no split"]
    assert odd == [f"2258277193_586949ec62.jpg{end}" for end in (".1#0", "#1", "#2", "#3", "#4")]
    assert data.report.errors == []


def test_real_order_and_texts(real):
    data, root, _ = real
    test = data.splits["test"]
    assert test.image_ids[0] == "3385593926_d3e9c21170.jpg"
    assert test.text_ids[:2] == tuple(f"3385593926_d3e9c21170.jpg#{k}" for k in range(2))
    lines = (root / "flickr8k" / "Flickr8k.token.txt").read_text().splitlines()
    text_of = dict(line.split("\t") for line in lines)
    for split in data.splits.values():
        assert all(text_of[i].strip() == t for i, t in zip(split.text_ids, split.texts,
                                                           strict=True))
        owners = [split.image_ids[i] for i in split.image_of_text]
        assert owners == [i.split("#")[0] for i in split.text_ids]


def test_real_second_load_decodes_nothing(real, monkeypatch):
    data, root, cache = real
    monkeypatch.setattr("itr_study.data.picture_files.decode", None)
    assert load_dataset("flickr8k", root, cache=cache).fingerprint == data.fingerprint


@pytest.mark.slow
def test_real_fingerprints_are_those_of_published_rows(real):
    _, root, cache = real
    known = json.loads((evidence_folder() / "flickr8k" / "data.json").read_text())
    published = {}
    for one in known.values():
        options = json.dumps(json.loads(one["part"])["data_options"] or {})
        published.setdefault(options, set()).add(one["data"])
    assert len(published) == 7
    for options, prints in published.items():
        chosen = json.loads(options)
        data = load_dataset("flickr8k", root, cache=cache, **chosen)
        assert {data.fingerprint} == prints
        assert data.published == (chosen.get("leave_out") not in SHARES)  # whose are of all bytes


def test_real_lists_that_were_exchanged_are_refused(real, tmp_path):
    _, root, cache = real
    for path in (root / "flickr8k").iterdir():
        (tmp_path / path.name).symlink_to(path)
    train, test = (tmp_path / f"Flickr_8k.{split}Images.txt" for split in ("train", "test"))
    lists = train.read_text(), test.read_text()
    for path, text in zip((test, train), lists, strict=True):
        path.unlink()
        path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_dataset("flickr8k", tmp_path, cache=cache)
    assert str(caught.value).startswith("2 problems")
    assert "expected the 1,000 test images, found 6,000, those of train" in str(caught.value)
