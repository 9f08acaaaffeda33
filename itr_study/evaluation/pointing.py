"""Where heads look, scored on pictures whose objects are known, beside maps that look nowhere."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from itr_study.checks import check_count
from itr_study.data.base import RetrievalDataset, Split
from itr_study.metrics.attention import coverage, focus, shuffled_map, uniform_map

DRAWS = 20  # times that a map is shuffled; its score is the mean of them
SHUFFLED = ", regions shuffled"  # ends the name of a map's random baseline


class Pointing(NamedTuple):
    """`focus` and `coverage` of a map, one of each for every image that shows an object."""

    focus: np.ndarray
    coverage: np.ndarray


def pointing(maps: Mapping[str, np.ndarray | Tensor], shown: np.ndarray,
             mask: np.ndarray | Tensor, seed: int = 0, draws: int = DRAWS) -> dict[str, Pointing]:
    """Score maps of heads by the objects they fall on, each beside itself with its regions
    shuffled, and all beside a map that weighs every region alike.

    A score above that of the shuffled map is due to where the head looks; what the shuffled map has
    above the uniform one is due to how peaked it is. The shuffled heads look at random places,
    each by itself: heads that agree with each other more than chance cover fewer objects.

    Args:
        maps: by name ("attention", "rank map"), (I, K, R) weights of each head.
        shown: (I, R, O) of `detected_objects` or `grid_objects`; images that show no object are
            left out.
        mask: (I, R) bool, the regions that exist.
        seed: of the shuffling; draws: how often, >= 1.
    Returns: a `Pointing` for each map, for its name + SHUFFLED, and for "uniform".
    Raises: ValueError as `focus`, for a map that weighs a region that does not exist, and where no
        image shows an object.
    """
    check_count("draws", draws)
    shown, mask = np.asarray(shown), np.asarray(mask)
    kept = (shown > 0).any(axis=(1, 2))
    if not kept.any():
        raise ValueError("no region of any image shows an object, so there is nothing to score")
    rng = np.random.default_rng(seed)
    found = {}
    for name, weights in maps.items():
        weights = np.asarray(weights, dtype=float)
        check_map(name, weights, shown, mask)
        weights = weights[kept]
        found[name] = scored(weights, shown[kept])
        drawn = [scored(shuffled_map(weights, mask[kept], rng), shown[kept]) for _ in range(draws)]
        found[name + SHUFFLED] = Pointing(*(np.mean(values, axis=0)
                                            for values in zip(*drawn, strict=True)))
    heads = max(weights.shape[1] for weights in maps.values()) if maps else 1
    uniform = np.repeat(uniform_map(mask[kept]), heads, axis=1)
    return found | {"uniform": scored(uniform, shown[kept])}


def scored(weights: np.ndarray, shown: np.ndarray) -> Pointing:
    """Both scores of a map."""
    return Pointing(focus(weights, shown), coverage(weights, shown))


def check_map(name: str, weights: np.ndarray, shown: np.ndarray, mask: np.ndarray) -> None:
    """Raise ValueError unless shapes agree and the map is 0 where there is no region."""
    if weights.ndim != 3 or mask.shape != weights.shape[::2] or mask.shape != shown.shape[:2]:
        raise ValueError(f"{name!r} must be (n_images, K, R), mask (n_images, R) and shown "
                         f"(n_images, R, objects); got {weights.shape}, {mask.shape} and "
                         f"{shown.shape}")
    beside = (weights != 0) & ~mask[:, None, :]
    if beside.any():
        raise ValueError(f"{name!r} weighs a region of image {np.argwhere(beside)[0, 0]} that does "
                         "not exist; is this the mask of the same split?")


def detected_objects(dataset: RetrievalDataset, split: Split, mask: np.ndarray) -> np.ndarray:
    """Which object each detector region of `scenes` looks at: (I, R, O) of zeros and ones.

    Region r is that of object r, if it was detected; invented regions and that of the whole picture
    show none. (A detector also mistakes attributes: the object is where it looks all the same.)

    Args:    mask: (I, R) bool of the detector's regions.
    Raises:  ValueError for data without known boxes, a mask of another size.
    """
    boxes = boxes_of(dataset, split.image_ids)
    most = max(map(len, boxes))
    if mask.ndim != 2 or len(mask) != len(boxes) or mask.shape[1] < most:
        raise ValueError(f"mask must be ({len(boxes)}, R) with a region for each of {most} "
                         f"objects; got {tuple(mask.shape)}")
    shown = np.zeros((*mask.shape, most))
    for image, things in enumerate(boxes):
        for place in range(len(things)):
            shown[image, place, place] = mask[image, place]
    return shown


def grid_objects(dataset: RetrievalDataset, split: Split, side: int) -> np.ndarray:
    """How much of each cell of a grid lies in the box of each object: (I, side * side, O).

    Cells go row by row, as the maps of convolutional networks do here. Boxes may overlap.

    Raises:  ValueError for data without known boxes, side < 1.
    """
    check_count("side", side)
    boxes = boxes_of(dataset, split.image_ids)
    edges = np.arange(side + 1) / side
    shown = np.zeros((len(boxes), side * side, max(map(len, boxes))))
    for image, things in enumerate(boxes):
        for place, (_, x0, y0, x1, y1) in enumerate(things):
            across, down = (np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0,
                                    None) * side for low, high in ((x0, x1), (y0, y1)))
            shown[image, :, place] = np.minimum(np.outer(down, across), 1).ravel()
    return shown


def detected_boxes(dataset: RetrievalDataset, image_id: str, regions: int) -> np.ndarray:
    """Where the detector's regions of a picture of `scenes` lie, to draw them: (R, 4) left, top,
    right and bottom in fractions of the picture.

    Those of objects have the object's box (the detector's own is off by 3 % at most), the last
    region has the whole picture; invented ones and padding, which lie nowhere, are NaN.

    Raises:  ValueError for data without known boxes, fewer regions than the picture needs.
    """
    (boxes,) = boxes_of(dataset, [image_id])
    if regions <= len(boxes):
        raise ValueError(f"picture {image_id} has {len(boxes)} objects and so at least "
                         f"{len(boxes) + 1} regions, got {regions}")
    found = np.full((regions, 4), np.nan)
    found[:len(boxes)] = [box[1:] for box in boxes]
    found[-1] = 0, 0, 1, 1
    return found


def boxes_of(dataset: RetrievalDataset, image_ids: Sequence[str]) -> list[list]:
    """The named boxes of each of some images."""
    if dataset.boxes is None:
        raise ValueError(f"nobody knows where the objects of {dataset.name} are; maps are scored "
                         "on scenes")
    return [dataset.boxes(image_id) for image_id in image_ids]
