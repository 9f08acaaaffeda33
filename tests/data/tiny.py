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
