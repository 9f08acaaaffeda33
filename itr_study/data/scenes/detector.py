"""Region features of `scenes` as a detector would give them: attributes, seen with noise.

A region is the sum of fixed random directions, one for each attribute value, one for each pair of
shape and colour, and one for each of x, y, width and height, plus noise. Some things are missed,
some attributes are mistaken, and some regions show nothing real. The last region is the whole
picture. All draws are integers or products of doubles, so every machine gives equal bits.
"""

import numpy as np

from itr_study.data.base import Regions
from itr_study.data.scenes.words import ATTRIBUTES, PLACES
from itr_study.data.scenes.world import MOST_THINGS, Scene

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
    sizes = [len(values) for values in ATTRIBUTES]
    sizes += [sizes[0] * sizes[1], len(PLACES), 4]
    tables = [generator.integers(0, 2, (n, SIZE)) * 2.0 - 1.0 for n in sizes]
    return [table * w for table, w in zip(tables, (*WEIGHTS, GEOMETRY), strict=True)]


def _detect(scene: Scene, generator: np.random.Generator, tables: list[np.ndarray]
            ) -> tuple[np.ndarray, np.ndarray]:
    """(R, D) features and (R,) mask of one scene; as many draws for any scene."""
    count = len(scene.things)
    sizes = np.array([len(values) for values in ATTRIBUTES] + [len(PLACES)])
    chances = generator.random((REGIONS, 6))  # attributes and place mistaken, region missed
    other = (generator.random((REGIONS, 5)) * sizes).astype(np.int64)
    box = generator.integers(0, 1001, (REGIONS, 4))  # invented boxes
    seen = other[:, :4].copy()  # invented regions show anything
    true = np.array([thing[:4] for thing in scene.things])
    seen[:count] = np.where(chances[:count, :4] < MISTAKEN[:4], seen[:count], true)
    jitter = box[:count] * (2 * JITTER) // 1000 - JITTER
    box[:count] = [(t.x, t.y, 2 * t.extent[0], 2 * t.extent[1]) for t in scene.things]
    box[:count] += jitter
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
