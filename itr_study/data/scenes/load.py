"""`scenes`, the embedded default data set: generated pictures that are described in English.

Each picture shows two to five things in a place; each caption tells a different part of it at a
different detail; how relevant any caption is to any picture is known exactly. Pictures come in
families in which some differ in one attribute; some captions suit many pictures. Everything is
drawn from numpy generators with exact arithmetic, so that all machines have the same data.

    words    things, places, and their English      world     what is in a picture, families
    captions texts, meanings, exact relevance       styles    captions from precise to vague
    draw     pictures
"""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from itr_study.checks import check_count
from itr_study.data.base import SPLITS, DataReport, DatasetRecord, Regions, RetrievalDataset, Split
from itr_study.data.caption_noise import with_caption_noise
from itr_study.data.scenes import draw
from itr_study.data.scenes.captions import MOST, Caption, as_world, captions, meaning_scores
from itr_study.data.scenes.styles import STYLES, USUAL, Style
from itr_study.data.scenes.words import ATTRIBUTES, COLOURS, PLACES, SHAPES, SIZES, TEXTURES
from itr_study.data.scenes.world import FAMILY, MOST_THINGS, Scene, Thing, family

# Region features as a detector would give them. A region is the sum of fixed random directions, one
# for each attribute value, one for each pair of shape and colour, and one for each of x, y, width
# and height, plus noise. Some things are missed, some attributes are mistaken, some regions show
# nothing real. All draws are integers or products of doubles, so every machine gives equal bits.
# The noise is calibrated so that a two-branch model on the mean of the regions is far from 100 %:
# after a minute of training on 1,500 pictures its RSUM on 500 is 320 to 350, by loss and model.
SIZE = 128  # D
SPURIOUS = 2  # regions that may show nothing real
REGIONS = MOST_THINGS + SPURIOUS + 1  # R
NOISE = 0.6  # standard deviation of the noise on each of the D numbers, in units of a direction's
MISSED = 0.03  # probability that a thing is not detected
INVENTED = 0.25  # probability that each spurious region is there
MISTAKEN = (0.05, 0.04, 0.04, 0.08, 0.04)  # wrong shape, colour, size, texture, place
WEIGHTS = (1.0, 1.0, 0.8, 0.8, 1.0, 1.0)  # shape, colour, size, texture, shape and colour, place
GEOMETRY = 1.0  # weight of each of x, y, width, height, scaled to [-1, 1]
JITTER = 30  # a box edge is off by at most this (1/1000 of the side)
_DIRECTIONS = 20260  # seed of the directions: part of the detector, not of the data


def detect_all(scenes: list[Scene], keys: list[tuple[int, ...]]) -> Regions:
    """Detect the regions of scenes, each with noise drawn from its own key.

    Region r < MOST_THINGS looks at thing r of the scene, if it was detected; then come SPURIOUS
    regions that may be invented, and last the whole picture.
    """
    tables = _tables()
    features = np.zeros((len(scenes), REGIONS, SIZE), np.float32)
    mask = np.zeros((len(scenes), REGIONS), bool)
    for i, (scene, key) in enumerate(zip(scenes, keys, strict=True)):
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
        features[i], mask[i] = _detect(scene, generator, tables)
    return Regions(features, mask)


def _tables() -> list[np.ndarray]:
    """Random +-1 directions: shape, colour, size, texture, shape x colour, place, geometry."""
    generator = np.random.Generator(np.random.PCG64(_DIRECTIONS))
    sizes = [*map(len, ATTRIBUTES), len(SHAPES) * len(COLOURS), len(PLACES), 4]
    tables = [generator.integers(0, 2, (n, SIZE)) * 2.0 - 1.0 for n in sizes]
    return [table * w for table, w in zip(tables, (*WEIGHTS, GEOMETRY), strict=True)]


def _detect(scene: Scene, generator: np.random.Generator, tables: list[np.ndarray]
            ) -> tuple[np.ndarray, np.ndarray]:
    """(R, D) features and (R,) mask of one scene; as many draws for any scene."""
    count = len(scene.things)
    sizes = np.array([*map(len, ATTRIBUTES), len(PLACES)])
    chances = generator.random((REGIONS, 6))  # attributes and place mistaken, region missed
    other = (generator.random((REGIONS, 5)) * sizes).astype(np.int64)
    box = generator.integers(0, 1001, (REGIONS, 4))  # invented boxes
    seen = other[:, :4].copy()  # invented regions show anything
    true = np.array([thing[:4] for thing in scene.things])
    seen[:count] = np.where(chances[:count, :4] < MISTAKEN[:4], seen[:count], true)
    exact = np.array([(t.x, t.y, 2 * t.extent[0], 2 * t.extent[1]) for t in scene.things])
    box[:count] = exact + box[:count] * (2 * JITTER) // 1000 - JITTER
    rows = [table[seen[:, a]] for a, table in enumerate(tables[:4])]
    rows.append(tables[4][seen[:, 0] * sizes[1] + seen[:, 1]])
    rows += [(box[:, a, None] / 500 - 1) * tables[6][a] for a in range(4)]
    features = sum(rows[1:], rows[0])
    features[-1] = tables[5][other[-1, 4] if chances[-1, 4] < MISTAKEN[4] else scene.place]
    mask = chances[:, 5] >= MISSED
    mask[count:MOST_THINGS] = False
    mask[MOST_THINGS:-1] = chances[MOST_THINGS:-1, 5] < INVENTED
    mask[-1] = True
    features += NOISE * _noise(generator, features.shape)
    return features * mask[:, None], mask


def _noise(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Nearly normal, mean 0 and variance 1: sums of four integers, equal on every machine."""
    total = generator.integers(0, 4096, (4, *shape)).sum(axis=0) - 4 * 4095 / 2
    return total / np.sqrt(4 * (4096 ** 2 - 1) / 12)


VERSION = 1  # raised with every change of scenes, captions, features or pictures
MOST_IMAGES = 100_000  # per split: the first digit of an id is the split
_CAPTIONS, _DETECTOR, _DRAWING = 1, 2, 3  # what a picture's random draws are for


class Box(NamedTuple):
    """A thing and its box, in fractions of the picture; the last word of the name is the shape."""

    name: str
    x0: float
    y0: float
    x1: float
    y1: float


class _Picture(NamedTuple):
    scene: Scene
    captions: list[Caption]
    key: tuple[int, ...]  # seeds everything random about it


def load(root: Path | None = None, *, train: int = 2000, dev: int = 300, test: int = 500,
         texts_per_image: int = 5, seed: int = 0, vagueness: int = USUAL,
         caption_noise: float = 0.0, noise_seed: int = 0) -> RetrievalDataset:
    """Generate the data set; the first pictures of a split do not depend on its size.

    Args:    root: not used; train, dev, test: numbers of pictures, 1 to 100,000; texts_per_image: 1
             to 20; seed: >= 0, another is another data set with the same words; vagueness: of the
             captions, 0 to 4; caption_noise, noise_seed: see `with_caption_noise`.
    Raises:  ValueError for a number that is out of range or, but for the noise, not whole.
    """
    sizes = {"train": train, "dev": dev, "test": test}
    for name, size in sizes.items():
        check_count(name, size, 1, MOST_IMAGES)
    check_count("texts_per_image", texts_per_image, 1, 20)
    check_count("seed", seed, 0, 2 ** 32 - 1)
    check_count("vagueness", vagueness, 0, len(STYLES) - 1)
    pictures: dict[str, _Picture] = {}
    splits = {}
    for number, name in enumerate(SPLITS):
        of_split = _pictures(sizes[name], texts_per_image, seed, number, STYLES[vagueness])
        splits[name] = _split(name, of_split)
        pictures |= of_split
    options = sizes | {"texts_per_image": texts_per_image, "seed": seed}
    if vagueness != USUAL:  # a later option: where it is not used, fingerprints stay as they were
        options["vagueness"] = vagueness
    whole = json.dumps([VERSION, {name: int(value) for name, value in options.items()},
                        [split.texts for split in splits.values()]], sort_keys=True)
    dataset = RetrievalDataset(
        "scenes", splits, partial(_open, pictures), hashlib.sha256(whole.encode()).hexdigest(),
        DataReport(counts={"images": len(pictures),
                           "texts": sum(len(split.texts) for split in splits.values())}),
        features={"detector": partial(_detector, pictures)},
        relevance=partial(_relevance, pictures), boxes=partial(_boxes, pictures),
        terms="Generated by itr_study; no rights reserved.")
    return with_caption_noise(dataset, caption_noise, noise_seed)


def _pictures(size: int, texts_per_image: int, seed: int, number: int, style: Style
              ) -> dict[str, _Picture]:
    scenes = [scene for group in range(-(-size // FAMILY))
              for scene in family(VERSION, seed, number, group)]
    pictures = {}
    for i, scene in enumerate(scenes[:size]):
        key = (VERSION, seed, number, i)
        pictures[f"scene-{number}{i:05d}"] = _Picture(
            scene, captions(scene, texts_per_image, *key, _CAPTIONS, style=style), key)
    return pictures


def _split(name: str, pictures: dict[str, _Picture]) -> Split:
    texts = {f"{image}#{j}": caption.text for image, picture in pictures.items()
             for j, caption in enumerate(picture.captions)}
    counts = [len(picture.captions) for picture in pictures.values()]
    return Split(name, tuple(pictures), tuple(texts), tuple(texts.values()),
                 np.repeat(np.arange(len(counts), dtype=np.int64), counts))


def _find(pictures: dict[str, _Picture], image_id: str) -> _Picture:
    if image_id not in pictures:
        raise ValueError(f"no picture {image_id!r} in scenes: ids run from scene-000000 (train), "
                         "scene-100000 (dev) and scene-200000 (test); load more pictures for more")
    return pictures[image_id]


def _open(pictures: dict[str, _Picture], image_id: str) -> Image.Image:
    picture = _find(pictures, image_id)
    return draw.draw(picture.scene, *picture.key, _DRAWING)


def _detector(pictures: dict[str, _Picture], split: Split) -> Regions:
    chosen = [_find(pictures, image_id) for image_id in split.image_ids]
    return detect_all([p.scene for p in chosen], [(*p.key, _DETECTOR) for p in chosen])


def _relevance(pictures: dict[str, _Picture], split: Split) -> np.ndarray:
    """(I, T) float32: 1 for matches, at most MOST otherwise."""
    world = as_world([_find(pictures, image_id).scene for image_id in split.image_ids])
    texts = [text_id.rpartition("#") for text_id in split.text_ids]
    meanings = [_find(pictures, image_id).captions[int(j)].meaning for image_id, _, j in texts]
    scores = np.minimum(meaning_scores(world, meanings), np.float32(MOST))
    scores[split.image_of_text, np.arange(len(meanings))] = 1
    return scores


def _boxes(pictures: dict[str, _Picture], image_id: str) -> list[Box]:
    """The things of a picture, in the order of its detector regions."""
    return [_box(thing) for thing in _find(pictures, image_id).scene.things]


def _box(thing: Thing) -> Box:
    words = [SIZES[thing.size], TEXTURES[thing.texture], COLOURS[thing.colour], SHAPES[thing.shape]]
    name = " ".join(word for word in words if word not in ("medium", "plain"))
    (wide, high), x, y = thing.extent, thing.x, thing.y
    return Box(name, (x - wide) / 1000, (y - high) / 1000, (x + wide) / 1000, (y + high) / 1000)


SCENES = DatasetRecord("scenes", load, generated=True, graded_by=("exact",),
                       judged_by="the exact relevance")
