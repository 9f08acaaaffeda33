"""Small real files for the reader tests."""

import json
from pathlib import Path

import numpy as np
from PIL import Image


def picture(path: Path, seed: int = 0) -> Path:
    """A small noisy picture in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def truncate(path: Path) -> None:
    """Cut off the second half, as an interrupted download does."""
    content = path.read_bytes()
    path.write_bytes(content[:len(content) // 2])


def flickr8k(root: Path) -> Path:
    """Six pictures, two a split, with 2 and 3 captions; one more picture in no split."""
    folder = root / "flickr8k"
    tokens = []
    for number, split in enumerate(("train", "dev", "test")):
        names = [f"{split}{i}.jpg" for i in range(2)]
        (folder).mkdir(parents=True, exist_ok=True)
        (folder / f"Flickr_8k.{split}Images.txt").write_text("\n".join(names) + "\n")
        for i, name in enumerate(names):
            picture(folder / "images" / name, seed=10 * number + i)
            tokens += [f"{name}#{k}\tCaption {k} of {name} . " for k in range(2 + i)]
    picture(folder / "images" / "extra.jpg", seed=99)
    tokens.append("extra.jpg#0\tNobody asks for it .")
    (folder / "Flickr8k.token.txt").write_text("\n".join(tokens) + "\n")
    return folder


def add_line(path: Path, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def karpathy(root: Path, name: str = "coco") -> Path:
    """Five pictures: two of train, one each of restval, val and test; 2 captions each."""
    folder = root / name
    records = []
    for number, split in enumerate(("train", "train", "restval", "val", "test")):
        filename = f"COCO_{number:03d}.jpg"
        picture(folder / "images" / "val2014" / filename, seed=number)
        sentences = [{"raw": f"Text {k} of {number} .", "sentid": 10 * number + k}
                     for k in range(2)]
        records.append({"filename": filename, "filepath": "val2014", "split": split,
                        "cocoid": 1000 + number, "sentences": sentences,
                        "sentids": [s["sentid"] for s in sentences]})
    save_json(folder, records, name)
    return folder


def save_json(folder: Path, records: list, name: str = "coco") -> None:
    (folder / f"dataset_{name}.json").write_text(json.dumps({"images": records, "dataset": name}))


def precomputed(root: Path, name: str = "coco", repeat: int = 1, texts: int = 2) -> Path:
    """Three images a split, (3, 4, 5) features, `texts` captions each; ids one per caption."""
    folder = root / name
    folder.mkdir(parents=True)
    for number, split in enumerate(("train", "dev", "test")):
        rng = np.random.default_rng(number)
        features = rng.standard_normal((3, 4, 5)).astype(np.float32)
        np.save(folder / f"{split}_ims.npy", np.repeat(features, repeat, axis=0))
        lines = [(100 * number + i, f"Text {k} of {split} {i} .")
                 for i in range(3) for k in range(texts)]
        (folder / f"{split}_ids.txt").write_text("".join(f"{i}\n" for i, _ in lines))
        (folder / f"{split}_caps.txt").write_text("".join(f"{t}\n" for _, t in lines))
    return folder


BIRDS = {"001.Crow": "train", "002.Wren": "train", "003.Gull": "dev", "004.Tern": "dev",
         "005.Jay": "test", "006.Auk": "test"}


def cub(root: Path, inside: str = "") -> Path:
    """Six species, two a split, of two pictures with two sentences each; the lists of both ways to
    choose dev, and texts, in the sub-folder `inside`."""
    folder = root / "cub"
    tables = {"images": [], "image_class_labels": [], "classes": []}
    lists = {"trainclasses": [], "valclasses": [], "testclasses": [], "trainvalclasses": []}
    for number, (name, split) in enumerate(BIRDS.items(), start=1):
        tables["classes"].append(f"{number} {name}")
        lists[f"{split.replace('dev', 'val')}classes"].append(name)
        lists["trainvalclasses"] += [name] * (split != "test")
        for k in range(2):
            one = f"{name}/{name[4:]}_{k}"
            picture(folder / "CUB_200_2011" / "images" / f"{one}.jpg", seed=2 * number + k)
            tables["images"].append(f"{2 * number + k - 1} {one}.jpg")
            tables["image_class_labels"].append(f"{2 * number + k - 1} {number}")
            text = folder / inside / "text_c10" / f"{one}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text(f"sentence 0 of {one} .\nsentence 1 of {one} .\n")
    lists["seen_test_images"] = [f"{name}/{name[4:]}_1.jpg" for name in BIRDS]
    for place, files in (("CUB_200_2011", tables), (inside, lists)):
        for name, lines in files.items():
            (folder / place / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


def own_folder(root: Path, split: bool = True) -> Path:
    """Six pictures, two a split, one caption each and a second one for the first."""
    folder = root / "mine"
    lines = ["image,text" + (",split" if split else "")]
    for number, name in enumerate(("train", "train", "val", "val", "test", "test")):
        picture(folder / "images" / f"p{number}.png", seed=number)
        lines.append(f'p{number}.png,"A picture, number {number}"' + (f",{name}" if split else ""))
    lines.append('p0.png,Once more' + (",train" if split else ""))
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")
    return folder
