"""Small made-up data of every kind that a user may have: drawn scenes written in others' layouts.

    dataset, options = make("karpathy", tmp_path)    then: reproduce --dataset ... --data tmp_path

Captions, pictures and boxes are those of `scenes`; region features are random numbers that hold the
meaning of a picture.
"""

import json
from pathlib import Path

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.data.scenes.load import load

SIZES = {"train": 130, "dev": 30, "test": 40}  # images a split


def make(kind: str, root: Path) -> tuple[str, dict]:
    """Write one kind of KINDS below a folder.

    Returns: the name of the data set, and the parameters that notebooks need beside `data`.
    """
    writer, dataset, given = KINDS[kind]
    scenes = load(None, **(dict(train=20, dev=4, test=6) if kind == "few" else SIZES),
                  texts_per_image=1 if kind == "one caption" else 5)
    writer(scenes, root / dataset)
    return dataset, given


def karpathy(scenes: RetrievalDataset, folder: Path) -> None:
    """Flickr30k: the JSON and its pictures."""
    _karpathy(scenes, folder, lambda split, number: (split.replace("dev", "val"), ""))


def coco(scenes: RetrievalDataset, folder: Path) -> None:
    """COCO: a third of train is "restval", pictures lie in train2014/ and val2014/."""
    _karpathy(scenes, folder, lambda split, number: (
        ("restval", "val2014") if split == "train" and number % 3 == 0 else
        (split.replace("dev", "val"), "train2014" if split == "train" else "val2014")))


def _karpathy(scenes: RetrievalDataset, folder: Path, place) -> None:
    records, sentence = [], 0
    for name, split in scenes.splits.items():
        for number, image in enumerate(split.image_ids):
            part, path = place(name, number)
            texts = [split.texts[t] for t in np.flatnonzero(split.image_of_text == number)]
            sentences = [{"raw": text, "sentid": sentence + k} for k, text in enumerate(texts)]
            sentence += len(texts)
            file = _picture(scenes, image, folder / "images" / path)
            records.append({"filename": file, "split": part, "sentences": sentences}
                           | ({"filepath": path, "cocoid": len(records) + 1} if path else {}))
    content = json.dumps({"images": records, "dataset": folder.name})
    (folder / f"dataset_{folder.name}.json").write_text(content)


def regions(scenes: RetrievalDataset, folder: Path) -> None:
    """Published features of 36 regions, an id a caption."""
    _features(scenes, folder, lambda rows: rows)


def a_row_a_caption(scenes: RetrievalDataset, folder: Path) -> None:
    """Pooled features, each row repeated for each caption."""
    _features(scenes, folder, lambda rows: rows.mean(axis=1), repeat=True)


def pooled(scenes: RetrievalDataset, folder: Path) -> None:
    """One vector an image."""
    _features(scenes, folder, lambda rows: rows.mean(axis=1))


def regions_and_pictures(scenes: RetrievalDataset, folder: Path) -> None:
    """Features with the pictures that they were made from, and the boxes of their regions."""
    _features(scenes, folder, lambda rows: rows)
    corners = np.random.default_rng(1).uniform(0, 64, (36, 2, 2)).astype(np.float32)
    boxes = np.sort(corners, axis=1).reshape(36, 4)  # left, top, right, bottom in pixels
    for name, split in scenes.splits.items():
        for image in split.image_ids:
            _picture(scenes, image, folder / "images")
        count = len(split.image_ids)
        np.save(folder / f"{name}_boxes.npy", np.repeat(boxes[None], count, axis=0))
        np.save(folder / f"{name}_img_sizes.npy", np.full((count, 2), 64))


def _features(scenes: RetrievalDataset, folder: Path, shaped, repeat: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name, split in scenes.splits.items():
        given = scenes.features["detector"](split).features.mean(axis=1)
        spread = np.random.default_rng(7).standard_normal((given.shape[1], 2048)) / 4
        rows = (given @ spread)[:, None] + random.standard_normal((len(given), 36, 2048)) / 4
        rows = shaped(rows.astype(np.float16))
        np.save(folder / f"{name}_ims.npy", rows[split.image_of_text] if repeat else rows)
        ids = [split.image_ids[i] for i in split.image_of_text]
        (folder / f"{name}_ids.txt").write_text("".join(f"{i}\n" for i in ids))
        (folder / f"{name}_caps.txt").write_text("".join(f"{t}\n" for t in split.texts))


def cub(scenes: RetrievalDataset, folder: Path) -> None:
    """Birds: ten images a class, a class lies in one split."""
    tables = {"images": [], "image_class_labels": [], "classes": []}
    lists = {"train": [], "dev": [], "test": []}
    for name, split in scenes.splits.items():
        for number, image in enumerate(split.image_ids):
            if number % 10 == 0:
                tables["classes"].append(f"{len(tables['classes']) + 1} "
                                         f"{len(tables['classes']) + 1:03d}.Bird")
                lists[name].append(tables["classes"][-1].split()[1])
            place, at = lists[name][-1], len(tables["images"]) + 1
            file = _picture(scenes, image, folder / "CUB_200_2011" / "images" / place)
            tables["images"].append(f"{at} {place}/{file}")
            tables["image_class_labels"].append(f"{at} {len(tables['classes'])}")
            texts = [split.texts[t] for t in np.flatnonzero(split.image_of_text == number)]
            text = folder / "text_c10" / place / f"{Path(file).stem}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("\n".join(texts) + "\n")
    for name, lines in tables.items():
        (folder / "CUB_200_2011" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    for name, file in (("train", "trainclasses"), ("dev", "valclasses"), ("test", "testclasses")):
        (folder / f"{file}.txt").write_text("\n".join(lists[name]) + "\n")


def with_splits(scenes: RetrievalDataset, folder: Path) -> None:
    """Own pictures with a column of splits."""
    _folder(scenes, folder, ",split")


def without_splits(scenes: RetrievalDataset, folder: Path) -> None:
    """Own pictures, splits left to the reader."""
    _folder(scenes, folder, "")


def _folder(scenes: RetrievalDataset, folder: Path, column: str) -> None:
    lines = [f"image,text{column}"]
    for name, split in scenes.splits.items():
        files = [_picture(scenes, image, folder / "images") for image in split.image_ids]
        lines += [f'{files[i]},"{text}"' + f",{name}" * bool(column)
                  for text, i in zip(split.texts, split.image_of_text, strict=True)]
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")


def _picture(scenes: RetrievalDataset, image: str, folder: Path) -> str:
    """Write a picture; the name of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    scenes.open_image(image).resize((64, 64)).save(folder / f"{image}.jpg")
    return f"{image}.jpg"


PUBLISHED = {"as_published": False}  # counts other than those of the whole data set
KINDS = {
    "karpathy": (karpathy, "flickr30k", {}),
    "one caption": (with_splits, "folder", {}),  # of each picture
    "restval": (coco, "coco", {}),
    "regions": (regions, "coco", {}),
    "a row a caption": (a_row_a_caption, "flickr30k", {}),
    "pooled": (pooled, "flickr30k", {}),
    "regions and pictures": (regions_and_pictures, "flickr30k", {}),
    "birds": (cub, "cub", {"data_options": PUBLISHED}),
    "splits": (with_splits, "folder", {}),
    "no splits": (without_splits, "folder", {}),
    "few": (without_splits, "folder", {}),
}
