"""A tiny data set made in memory: random pictures, a few words."""

import numpy as np
from PIL import Image

from itr_study.data.base import Regions, RetrievalDataset, Split

WORDS = "dog cat man red ball runs sits on the green grass two children play".split()


def picture(image_id: str, side: int = 64) -> Image.Image:
    """A picture that depends on its id only: smooth colours with some noise."""
    rng = np.random.default_rng(sum(map(ord, image_id)))
    coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8))
    return coarse.resize((side, side), Image.Resampling.BICUBIC)


def fake_split(name: str, images: int, texts_each: int = 2) -> Split:
    rng = np.random.default_rng(len(name))
    image_of_text = np.repeat(np.arange(images), texts_each)
    texts = tuple(" ".join(rng.choice(WORDS, 6)) for _ in image_of_text)
    return Split(name, tuple(f"{name}{i}" for i in range(images)),
                 tuple(f"{name}{i}#{t}" for t, i in enumerate(image_of_text)), texts, image_of_text)


def fake_dataset(train: int = 6, dev: int = 3, test: int = 4, **changes) -> RetrievalDataset:
    splits = {n: fake_split(n, c) for n, c in (("train", train), ("dev", dev), ("test", test))}
    return RetrievalDataset(**{"name": "fake", "splits": splits, "open_image": picture,
                               "fingerprint": f"{train}-{dev}-{test}"} | changes)


def detector(split: Split) -> Regions:
    """3 regions of 5 numbers; the last region of odd pictures does not exist."""
    images = len(split.image_ids)
    features = np.random.default_rng(images).normal(size=(images, 3, 5)).astype(np.float32)
    mask = np.ones((images, 3), bool)
    mask[1::2, 2] = False
    return Regions(features, mask)


def relevance(split: Split) -> np.ndarray:
    table = np.full((len(split.image_ids), len(split.texts)), 0.25)
    table[split.image_of_text, np.arange(len(split.texts))] = 1
    return table
