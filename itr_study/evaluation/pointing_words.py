"""Whether words look at what they name, on photographs in which a detector found the objects.

    table = dataset_boxes(dataset, NanoDet(), folder)       boxes of the detector
    places = grid_boxes(7), or those of FrozenRegions       where each region lies
    rows = word_pointing(split, maps, places, table)        a row for each name of a class
    by_class(rows)                                          means, beside maps that look nowhere

A detector is no truth: it misses objects and takes one for another. What is said is how well two
networks agree, one that has learnt boxes from people and one that has learnt captions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd

from itr_study.checks import check_number
from itr_study.data.base import Split
from itr_study.data.box_table import BoxTable
from itr_study.data.coco_classes import Named, class_names, named_classes
from itr_study.evaluation.pointing_scores import MEASURES, InBoxes
from itr_study.metrics.attention import NEAR

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
