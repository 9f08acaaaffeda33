"""Where heads look, scored on pictures whose objects are known, beside maps that look nowhere."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from math import isqrt
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from itr_study.checks import check_count, check_number
from itr_study.data.base import RetrievalDataset, Split
from itr_study.data.box_table import (
    BoxTable,
    Named,
    areas,
    class_names,
    covered,
    grid_boxes,
    named_classes,
)
from itr_study.encoders.views import RESIZE_RATIO
from itr_study.features.regions import FrozenRegions
from itr_study.features.texts import EncodedData
from itr_study.files.paths import home
from itr_study.metrics.attention import NEAR, coverage, focus, pixel_map, shuffled_map, uniform_map

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


# How much of a map over regions lies in some boxes, beside maps that look nowhere.
#
#     held = InBoxes(places, boxes)       regions of a picture, boxes of what a word names
#     held.scored(weights)                the MEASURES of one map over these regions

SPREAD = 0.25  # standard deviation of the centre's map, in sides of the picture
EVERYTHING = np.array([[0.0, 0.0, 1.0, 1.0]])
HALF = 0.5 + 1e-6  # of a map's largest value: a pixel of more belongs to what is looked at
PIXELS = 64  # a side of the raster on which places are compared with boxes
MEASURES = ("mass", "uniform", "centre", "area", "hit", "uniform_hit", "centre_hit",
            "iou", "uniform_iou", "centre_iou")


class InBoxes:
    """Places (R, 4) of the regions of a picture, NaN for one that lies nowhere, held against the
    boxes (N, 4) of one class; what no map changes is computed once.

    inside: (R,) how much of each place lies in any of the boxes, 0 of one that lies nowhere.

    Raises:  ValueError where all lie nowhere.
    """

    def __init__(self, places: np.ndarray, boxes: np.ndarray) -> None:
        lies = np.isfinite(places).all(axis=1)
        if not lies.any():
            raise ValueError("nobody knows where any region of this picture lies, so that no map "
                             "of it can be scored; take features whose boxes are known, such as "
                             'images="lite0:grid:one"')
        self.places, (self.inside, centre) = places.copy(), np.zeros((2, len(places)))
        self.inside[lies], centre[lies] = covered(places[lies], boxes), centre_map(places[lies])
        points = np.concatenate([middles(places), [[0.5, 0.5]]])[:, None]
        within = ((points >= boxes[:, :2]) & (points <= boxes[:, 2:])).all(axis=2).any(axis=1)
        self.hits, centre_hit = within[:-1], within[-1]  # false beside NaN
        self.named = pixel_map(np.ones(len(boxes)), boxes, PIXELS) > 0
        even = np.full(len(places), 1 / len(places))
        self.nowhere = {
            "uniform": self.inside.mean(), "centre": centre @ self.inside,
            "area": covered(EVERYTHING, boxes)[0], "uniform_hit": np.mean(self.hits),
            "centre_hit": centre_hit, "uniform_iou": self.overlap(even),
            "centre_iou": self.overlap(centre)}

    def scored(self, weights: np.ndarray) -> tuple[float, ...]:
        """The MEASURES of one map (R,).

        Example: of two halves the left one is the box; a map that gives it 0.8
            >>> halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
            >>> InBoxes(halves, halves[:1]).scored(np.array([0.8, 0.2]))[MEASURES.index("mass")]
            0.8
        """
        found = self.nowhere | {
            "mass": weights @ self.inside, "iou": self.overlap(weights),
            "hit": np.mean(self.hits, where=weights == weights.max())}
        return tuple(float(found[measure]) for measure in MEASURES)

    def overlap(self, weights: np.ndarray) -> float:
        """Intersection over union of what a map (R,) looks at with the boxes: the pixels of more
        than half its largest value, as it is drawn (`pixel_map`), and those in any box.

        More, not as much: where a region of the whole picture lies below all others, an even map
        has exactly half of its largest value beside them. It is then held to look at them, as a map
        is that differs from it by next to nothing.

        Source:  the localisation of CAM (Zhou et al., CVPR 2016, Sec. 3.2).
        Differs: half of the maximum, not a fifth; pixels themselves, not the box around the largest
                 part of them: a class may have several boxes.
        Example: the map looks at the left half, of which the box is the upper half
            >>> halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
            >>> InBoxes(halves, np.array([[0, 0, 0.5, 0.5]])).overlap(np.array([0.8, 0.2]))
            0.5
        """
        seen = pixel_map(weights, self.places, PIXELS)
        seen = seen > HALF * seen.max()
        union = (seen | self.named).sum()
        return float((seen & self.named).sum() / union) if union else 0.0


def centre_map(places: np.ndarray) -> np.ndarray:
    """(R,) weights that fall with the distance of a place's middle from the picture's, as a normal
    curve with standard deviation SPREAD, times the place's area: the map of somebody who always
    looks at the middle. They add up to 1."""
    squared = ((middles(places) - 0.5) ** 2).sum(axis=1)
    weights = areas(places) * np.exp(-squared / (2 * SPREAD ** 2))
    return weights / weights.sum()


def middles(places: np.ndarray) -> np.ndarray:
    """(R, 2) x and y."""
    return (places[:, :2] + places[:, 2:]) / 2


# Where the regions lie that a model was given: boxes of each picture of a split.

WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]])


def region_boxes(dataset: RetrievalDataset, data: EncodedData,
                 split: Split) -> Callable[[int, int], np.ndarray]:
    """What says of an image of a split, by its index and its number of regions R, where these lie:
    (R, 4) left, top, right, bottom in fractions of the picture's sides.

    Regions of a network's map are the cells of a grid, row by row; those of a detector have its
    boxes; one region is the whole picture. NaN for regions that lie nowhere, which `scenes` has,
    and for all of them where the features were made elsewhere and came without boxes.

    Args:    dataset and data: the same before and after encoding.
    """
    detected = [one for one in data.image_encoders if isinstance(one, FrozenRegions)]
    made_here = bool(data.image_encoders or data.inputs.pixels)
    crops = any(one.part.views == "ten" for one in data.image_encoders)

    @cache  # asked for when somebody looks: a table of boxes may have to be made
    def found() -> np.ndarray:
        return detected[0].boxes(dataset, home() / "features")[split.name].boxes

    def boxes(image: int, regions: int) -> np.ndarray:
        if detected:
            return found()[image]
        if regions == 1:
            return WHOLE
        if made_here:
            cells = grid_boxes(isqrt(regions))
            # of ten crops evaluation sees the first, the middle of the picture
            return 0.5 + (cells - 0.5) / RESIZE_RATIO if crops else cells
        if dataset.boxes is not None:
            return detected_boxes(dataset, split.image_ids[image], regions)
        return np.full((regions, 4), np.nan)

    return boxes


# Whether words look at what they name, on photographs in which a detector found the objects.
#
#     table = dataset_boxes(dataset, NanoDet(), folder)       boxes of the detector
#     places = grid_boxes(7), or those of FrozenRegions       where each region lies
#     rows = word_pointing(split, maps, places, table)        a row for each name of a class
#     by_class(rows)                                          means, beside maps that look nowhere
#
# A detector is no truth: it misses objects and takes one for another. What is said is how well two
# networks agree, one that has learnt boxes from people and one that has learnt captions.

SURE = 0.3  # least score of a box that counts: of 36 pictures looked at, most below are mistaken
# What other words of the text have in the same boxes: all of them, and names of other classes, read
# beside what the names have that stand beside such.
CONTROLS = ("rest", "others", "mass_beside_others")
MEAN = "mean of classes"  # the line of a table by class in which each counts once


class Target(NamedTuple):
    """A name in text `text` of a split, and the boxes (N, 4) of its class in the text's image."""

    text: int
    image: int
    named: Named
    boxes: np.ndarray


def targets(split: Split, table: BoxTable, sure: float = SURE) -> Iterator[Target]:
    """Every name of a class in every text, where the text's own image has a box of that class.

    Args:    sure: least score of a box, in [0, 1].
    Raises:  DataError for an image that the table does not have.
    """
    check_number("sure", sure, least=0, most=1)
    for text, caption in enumerate(split.texts):
        image = int(split.image_of_text[text])
        found = table.of(split.image_ids[image]).above(sure)
        for named in named_classes(caption):
            boxes = found.boxes[found.classes == named.number]
            if len(boxes):
                yield Target(text, image, named, boxes)


def word_pointing(split: Split, maps: Sequence[np.ndarray],
                  places: np.ndarray | Sequence[np.ndarray], table: BoxTable,
                  sure: float = SURE) -> pd.DataFrame:
    """How much of the map of each name falls in boxes of its class.

    A region's weight lies evenly on its place; boxes of a class that overlap count once. The map of
    a name of several words is the mean of theirs. The three maps that look nowhere are scored on
    the same boxes: "uniform" gives every region the same weight, "centre" weighs a region by a
    normal curve around the middle of the picture, and "area" is an even map of the whole picture.
    (On a grid uniform and area are one; regions of a detector already lie on objects.)

    Args:
        split: whose texts and images these are.
        maps: T arrays (W, R), one for each text: weights of each of its W words, as `tokenize`
            counts them, over the R regions of its own image; at least 0, each row adding up to 1.
        places: (R, 4) for all images or I of these, whose R may differ: left, top, right and bottom
            of each region in fractions of the picture.
        table: boxes of the detector; sure: least score of a box, in [0, 1].
    Returns: a row for each name: text, image (places in the split), class; rest, the mass of the
        mean map of all other words of the text in the same boxes (NaN where the name is all of it):
        a map that does not know its word has as much there; others, the mass of the mean map of the
        text's names of other classes, in the same boxes, and mass_beside_others, the name's own
        beside it (NaN where the text has none): a map that only knows nouns has as much; mass,
        uniform, centre, area, each in [0, 1]; hit, whether the middle of the region with most
        weight lies in a box (Zhang et al., Top-down Neural Attention, ECCV 2016, Sec. 4.1: the
        pointing game, there with a margin of 15 pixels; of equal ones the mean, for regions are
        sorted by the detector's score), uniform_hit, the mean over all regions, and centre_hit, the
        picture's middle; iou, uniform_iou and centre_iou as `InBoxes.overlap` has it, that of the
        whole picture being the area.
    Raises: ValueError for maps that are none or fit no text, places that fit no map, no name with a
        box of its class at all.
    """
    if len(maps) != len(split.texts):
        raise ValueError(f"maps must be one for each text of split {split.name}: "
                         f"{len(split.texts)}; got {len(maps)}")
    places, images = [np.asarray(place) for place in places], len(split.image_ids)
    shapes = [place.shape for place in places]
    same = set(shapes) == {(4,)}
    if not same and (len(shapes) != images or any(
            len(shape) != 2 or shape[1] != 4 for shape in shapes)):
        raise ValueError(f"places must be (R, 4), or one such array for each of {images} images; "
                         f"got {len(shapes)} of shapes {sorted(set(shapes))}")
    of_image = [np.stack(places)] * images if same else places
    return target_rows(
        targets(split, table, sure), class_names(), maps, of_image.__getitem__,
        f"no text of split {split.name} names a class of which its image has a box of score {sure} "
        "or more; try a lower `sure`")


def target_rows(found: Iterable[Target], names: Sequence[str], maps: Sequence[np.ndarray],
                places: Callable[[int], np.ndarray], nothing: str) -> pd.DataFrame:
    """A row for each target, as `word_pointing` returns them.

    Args:    found: text by text; names: of the classes; maps: one for each text; places: of the
             regions of an image, the same whenever asked, NaN for one that lies nowhere, whose
             weight falls beside every box; nothing: what to say where there is no target.
    Raises:  ValueError for that, for maps that are none, and an image whose regions lie nowhere.
    """
    rows, known = [], {}  # texts of a picture name the same things: boxes -> what no map changes
    for _, of_text in groupby(found, key=attrgetter("text")):
        named = list(of_text)
        of_image = places(named[0].image)
        pairs = [word_map(maps[target.text], target, len(of_image)) for target in named]
        for target, (name, rest) in zip(named, pairs, strict=True):
            key = target.image, target.boxes.tobytes()
            if key not in known:
                known[key] = InBoxes(of_image, target.boxes)
            inside = known[key].inside
            others = [map_ for other, (map_, _) in zip(named, pairs, strict=True)
                      if other.named.number != target.named.number]
            beside = (np.mean(others, axis=0) @ inside, name @ inside) if others else (np.nan,) * 2
            rows.append((target.text, target.image, names[target.named.number], rest @ inside,
                         *beside, *known[key].scored(name)))
    if not rows:
        raise ValueError(nothing)
    return pd.DataFrame(rows, columns=["text", "image", "class", *CONTROLS, *MEASURES])


def word_map(maps: np.ndarray, target: Target, regions: int) -> tuple[np.ndarray, np.ndarray]:
    """(R,) the map of a name, the mean of those of its words, and (R,) the mean of those of all
    other words of its text, NaN where there is none; ValueError where they are no maps."""
    maps = np.asarray(maps, float)
    if maps.ndim != 2 or maps.shape[1] != regions or len(maps) < target.named.stop:
        raise ValueError(f"the map of text {target.text} must be (words, {regions}) with at least "
                         f"{target.named.stop} words; got {maps.shape}; words are counted as "
                         "`tokenize` does, without marks of a beginning or an end")
    sums = maps.sum(axis=1)
    right = (maps >= 0).all(axis=1) & (np.abs(sums - 1) <= NEAR)
    if not right.all():
        word = int(right.argmin())
        raise ValueError(f"weights of a word must be at least 0 and add up to 1; in text "
                         f"{target.text} those of word {word + 1} of {len(maps)} add up to "
                         f"{sums[word]:.4g}, the least is {maps[word].min():.4g}")
    words = slice(target.named.start, target.named.stop)
    rest = np.delete(maps, words, axis=0)
    return maps[words].mean(axis=0), (rest.mean(axis=0) if len(rest)
                                      else np.full(regions, np.nan))


def by_class(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean of every measure by class, most frequent first, with how many names and images; then
    over all names, in which persons and dogs are most, and over classes, each counted once."""
    groups = rows.groupby("class")
    measures = [*CONTROLS, *MEASURES]
    table = groups[measures].mean()
    table.insert(0, "names", groups.size())
    table.insert(1, "images", groups["image"].nunique())
    table = table.sort_values("names", ascending=False, kind="stable")
    totals = {"names": len(rows), "images": rows["image"].nunique()}
    table.loc["all names"] = totals | rows[measures].mean().to_dict()
    table.loc[MEAN] = totals | table.iloc[:-1][measures].mean().to_dict()
    return table.astype({"names": int, "images": int})
