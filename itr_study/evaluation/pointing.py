"""Where heads and words look, scored on known boxes against baselines without content."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from math import isqrt
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from itr_study.checks import check_number
from itr_study.data import box_table
from itr_study.data.base import RetrievalDataset, Split
from itr_study.encoders.base import RESIZE_RATIO
from itr_study.features.regions import FrozenRegions
from itr_study.features.texts import EncodedData
from itr_study.files.paths import home
from itr_study.metrics.attention import (
    coverage,
    focus,
    is_map,
    pixel_map,
    shuffled_map,
    uniform_map,
)

DRAWS = 20  # times that a map is shuffled; its score is the mean of them
WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]])  # the box of the whole picture
SHUFFLED = ", regions shuffled"  # ends the name of a map's random baseline


class Pointing(NamedTuple):
    """`focus` and `coverage` of a map, for every image that shows an object."""

    focus: np.ndarray
    coverage: np.ndarray


def pointing(maps: Mapping[str, np.ndarray | Tensor], shown: np.ndarray,
             mask: np.ndarray | Tensor, seed: int = 0) -> dict[str, Pointing]:
    """Score maps of heads by the objects they fall on, against shuffled maps and an even one.

    A score above that of the shuffled map is due to where the head looks, one above the even map
    to how peaked it is. Heads are shuffled one by one: heads that agree cover fewer objects.

    Args:
        maps: by name ("attention", "rank map"), (I, K, R) weights of each head.
        shown: (I, R, O) of `detected_objects`; images without an object are left out.
        mask: (I, R) bool, the regions that exist.
        seed: of the shuffling.
    Returns: A `Pointing` for each map, for its name + SHUFFLED, and for "uniform".
    Raises: ValueError: as `focus`; a map that weighs a region that does not exist; no object at
        all.
    """
    shown, mask = np.asarray(shown), np.asarray(mask)
    kept = (shown > 0).any(axis=(1, 2))
    if not kept.any():
        raise ValueError("no region of any image shows an object, so there is nothing to score")

    def scored(weights: np.ndarray) -> Pointing:
        return Pointing(focus(weights, shown[kept]), coverage(weights, shown[kept]))

    rng, found, heads = np.random.default_rng(seed), {}, 1
    for name, given in maps.items():
        weights = np.asarray(given, dtype=float)
        check_map(name, weights, shown, mask)
        weights, heads = weights[kept], max(heads, weights.shape[1])
        found[name] = scored(weights)
        drawn = [scored(shuffled_map(weights, mask[kept], rng)) for _ in range(DRAWS)]
        found[name + SHUFFLED] = Pointing(*np.mean(drawn, axis=0))
    uniform = np.repeat(uniform_map(mask[kept]), heads, axis=1)
    return found | {"uniform": scored(uniform)}


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
    """Find the object of each detector region of `scenes`: (I, R, O) of zeros and ones.

    Region r is that of object r, if the mask (I, R) says that it was detected; invented regions and
    that of the whole picture show none.
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


def detected_boxes(dataset: RetrievalDataset, image_id: str, regions: int) -> np.ndarray:
    """Return the boxes (R, 4) of the detector's regions of a picture of `scenes`, to draw them.

    Left, top, right, bottom in fractions of the picture. Regions of objects have the object's box
    (the detector's own is off by 3 % at most), the last one the whole picture; invented ones and
    padding are NaN.
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
    """Return the named boxes of some images; raise ValueError unless they are known."""
    if dataset.boxes is None:
        raise ValueError(f"nobody knows where the objects of {dataset.name} are; maps are scored "
                         "on scenes")
    return [dataset.boxes(image_id) for image_id in image_ids]


SPREAD = 0.25  # standard deviation of the centre's map, in sides of the picture
HALF = 0.5 + 1e-6  # of a map's largest value: a pixel of more belongs to what is looked at
PIXELS = 64  # a side of the raster on which places are compared with boxes
MEASURES = ("mass", "uniform", "centre", "area", "hit", "uniform_hit", "centre_hit",
            "iou", "uniform_iou", "centre_iou")


class InBoxes:
    """Scores maps over the regions of a picture by the boxes of one class.

    Args:
        places: (R, 4) of the regions, NaN for one without a place; not of all.
        boxes: (N, 4) of the class.

    Attributes:
        inside: (R,) share of each place in any of the boxes, 0 without a place.
    """

    def __init__(self, places: np.ndarray, boxes: np.ndarray) -> None:
        lies = np.isfinite(places).all(axis=1)
        if not lies.any():
            raise ValueError("nobody knows where any region of this picture lies, so that no map "
                             "of it can be scored; take features whose boxes are known, such as "
                             'images="lite0:grid:one"')
        self.places, (self.inside, centre) = places.copy(), np.zeros((2, len(places)))
        self.inside[lies] = box_table.covered(places[lies], boxes)
        centre[lies] = centre_map(places[lies])
        points = np.concatenate([middles(places), [[0.5, 0.5]]])[:, None]
        within = ((points >= boxes[:, :2]) & (points <= boxes[:, 2:])).all(axis=2).any(axis=1)
        self.hits, centre_hit = within[:-1], within[-1]  # false where NaN
        self.named = pixel_map(np.ones(len(boxes)), boxes, PIXELS) > 0
        even = np.full(len(places), 1 / len(places))
        self.nowhere = {
            "uniform": self.inside.mean(), "centre": centre @ self.inside,
            "area": box_table.covered(WHOLE, boxes)[0], "uniform_hit": np.mean(self.hits),
            "centre_hit": centre_hit, "uniform_iou": self.overlap(even),
            "centre_iou": self.overlap(centre)}

    def scored(self, weights: np.ndarray) -> tuple[float, ...]:
        """Compute the MEASURES of one map (R,).

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
        """Compute the intersection over union with the boxes of what a map (R,) looks at.

        It looks at the pixels (`pixel_map`) of more than half its largest value; exactly half does
        not count, which an even map has next to the others if one region is the whole picture.

        Source: the localisation of CAM (Zhou et al., CVPR 2016, Sec. 3.2), which takes a fifth of
        the maximum, and the box around the largest part.

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
    """Weigh places (R,) by area and a normal curve (SPREAD) around the middle of the picture."""
    squared = ((middles(places) - 0.5) ** 2).sum(axis=1)
    weights = box_table.areas(places) * np.exp(-squared / (2 * SPREAD ** 2))
    return weights / weights.sum()


def middles(places: np.ndarray) -> np.ndarray:
    """Compute the middles (R, 2) of places, x and y."""
    return (places[:, :2] + places[:, 2:]) / 2


def region_boxes(dataset: RetrievalDataset, data: EncodedData,
                 split: Split) -> Callable[[int, int], np.ndarray]:
    """Make a function that places the regions of an image of a split.

    Regions of a network's map are the cells of a grid, row by row; those of a detector have its
    boxes, and so have published features with boxes beside them; one region is the whole picture.
    NaN for regions without a place, such as invented ones of `scenes`, and for features that came
    without boxes.

    Takes data before and after encoding; gives a function of the image's index and its number of
    regions R, which returns (R, 4) left, top, right, bottom in fractions of the picture.
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
            cells = box_table.grid_boxes(isqrt(regions))
            # of ten crops evaluation sees the first, the middle of the picture
            return 0.5 + (cells - 0.5) / RESIZE_RATIO if crops else cells
        if dataset.places is not None:
            return dataset.places(split)[image]
        if dataset.boxes is not None:
            return detected_boxes(dataset, split.image_ids[image], regions)
        return np.full((regions, 4), np.nan)

    return boxes


# A detector is no truth: scores on its boxes tell how well two networks agree.
SURE = 0.3  # least score of a box that counts: of 36 pictures looked at, most below are mistaken
# Mass in the same boxes of all other words, of names of other classes, and of the name itself.
CONTROLS = ("rest", "others", "mass_beside_others")
MEAN = "mean of classes"  # the line of a table by class in which each counts once


class Target(NamedTuple):
    """A name in text `text` of a split, and the boxes (N, 4) of its class in the text's image."""

    text: int
    image: int
    named: box_table.Named
    boxes: np.ndarray


def targets(split: Split, table: box_table.BoxTable, sure: float = SURE) -> Iterator[Target]:
    """Yield every name of a class in every text whose own image has a box of that class.

    Raises: DataError: an image that the table does not have.
    """
    check_number("sure", sure, least=0, most=1)
    for text, caption in enumerate(split.texts):
        image = int(split.image_of_text[text])
        found = table.of(split.image_ids[image]).above(sure)
        for named in box_table.named_classes(caption):
            boxes = found.boxes[found.classes == named.number]
            if len(boxes):
                yield Target(text, image, named, boxes)


def word_pointing(split: Split, maps: Sequence[np.ndarray],
                  places: np.ndarray | Sequence[np.ndarray], table: box_table.BoxTable,
                  sure: float = SURE) -> pd.DataFrame:
    """Compute how much of the map of each name falls in boxes of its class.

    A region's weight is spread evenly over its place; overlapping boxes count once. The map of a
    name of several words is their mean. Baselines on the same boxes: "uniform" gives every region
    the same weight, "centre" a normal curve around the middle of the picture, "area" is an even map
    of the whole picture (on a grid uniform and area are equal).

    Source of hit: the pointing game (Zhang et al., Top-down Neural Attention, ECCV 2016, Sec. 4.1),
    there with a margin of 15 pixels; of equal weights the mean.

    Args:
        split: whose texts and images these are.
        maps: T arrays (W, R), one for each text: weights of its W words, as `tokenize` counts them,
            over the R regions of its own image; at least 0, each row adds up to 1.
        places: (R, 4) for all images or I of these, whose R may differ.
        table: boxes of the detector.
        sure: least score of a box, in [0, 1].
    Returns: A row for each name: text, image (indices in the split), class; rest, the mass in the
        boxes of all other words of the text (NaN: none): a map that does not know its word has as
        much; others, the mass of the text's names of other classes, and mass_beside_others, the
        name's own in these texts (NaN: none): a map that only knows nouns has as much; mass,
        uniform, centre, area in [0, 1]; hit, whether the middle of the region with most weight is
        in a box, uniform_hit (mean of all regions), centre_hit (the picture's middle); iou,
        uniform_iou, centre_iou of `InBoxes.overlap`, of which area is that of the whole picture.
    Raises: ValueError: maps that are none or fit no text, places that fit no map, no name with a
        box of its class.
    """
    check_each_text("maps", maps, split)
    of_image, images = [np.asarray(place) for place in places], len(split.image_ids)
    shapes = {place.shape for place in of_image}
    if shapes == {(4,)}:
        of_image = [np.stack(of_image)] * images
    elif len(of_image) != images or any(len(shape) != 2 or shape[1] != 4 for shape in shapes):
        raise ValueError(f"places must be (R, 4), or one such array for each of {images} images; "
                         f"got {len(of_image)} of shapes {sorted(shapes)}")
    return target_rows(
        targets(split, table, sure), box_table.class_names(), maps, of_image.__getitem__,
        f"no text of split {split.name} names a class of which its image has a box of score {sure} "
        "or more; try a lower `sure`")


def check_each_text(name: str, given: Sequence, split: Split) -> None:
    """Raise ValueError unless something is given for each text of a split."""
    if len(given) != len(split.texts):
        raise ValueError(f"{name} must be one for each text of split {split.name}: "
                         f"{len(split.texts)}; got {len(given)}")


def target_rows(found: Iterable[Target], names: Sequence[str], maps: Sequence[np.ndarray],
                places: Callable[[int], np.ndarray], nothing: str) -> pd.DataFrame:
    """Score each target, text by text; return the rows of `word_pointing`.

    Takes the names of classes, a map for each text, the places of the regions of an image (weight
    on NaN, a region without a place, hits no box), and the error if there is no target.
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
    """Average the maps of a name's words, and of all other words of its text: (R,) each."""
    maps = np.asarray(maps, float)
    if maps.ndim != 2 or maps.shape[1] != regions or len(maps) < target.named.stop:
        raise ValueError(f"the map of text {target.text} must be (words, {regions}) with at least "
                         f"{target.named.stop} words; got {maps.shape}; words are counted as "
                         "`tokenize` does, without marks of a beginning or an end")
    if not is_map(maps).all():
        word = int(is_map(maps).argmin())
        raise ValueError(f"weights of a word must be at least 0 and add up to 1; in text "
                         f"{target.text} those of word {word + 1} of {len(maps)} add up to "
                         f"{maps[word].sum():.4g}, the least is {maps[word].min():.4g}")
    words = slice(target.named.start, target.named.stop)
    rest = np.delete(maps, words, axis=0)
    return maps[words].mean(axis=0), (rest.mean(axis=0) if len(rest) else np.full(regions, np.nan))


def by_class(rows: pd.DataFrame) -> pd.DataFrame:
    """Average all measures by class, most frequent first, then over names and over classes."""
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
