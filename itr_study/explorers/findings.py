"""What a map shows, found by its numbers: of each colour a sentence, and how the frames differ."""

from collections.abc import Hashable
from textwrap import shorten

import numpy as np

from itr_study.digits import number
from itr_study.explorers.map_data import MapData
from itr_study.explorers.plane import FIRST

LETTERS = 60  # of a text that is named


def finding(data: MapData, name: Hashable, colour: str) -> str:
    """What a colour shows in a frame, and where there are several, from the first to the last."""
    told = {"kind": _middles, "rank": _failures, "hub": _hubs, "gain": _gains}[colour](data, name)
    return told + _change(data, colour) * (len(data.names) > 1)


def called(name: Hashable) -> str:
    """A frame in words: a number is an epoch."""
    return f"epoch {name}" if isinstance(name, int) else str(name)


def _middles(data: MapData, name: Hashable) -> str:
    """How far images and texts lie apart as a whole."""
    places = data.plane.places[name]
    middles = [part.mean(axis=0) for part in np.split(places, [data.n_images])]
    return (f" The middle of the images lies {number(apart(*middles) / spread(places), 2)} from "
            "that of the texts, where a point lies 1 from the middle of all on average.")


def _failures(data: MapData, name: Hashable) -> str:
    """How many there are, and whether they lie in the middle."""
    failed, places = data.known[name].ranks > FIRST, data.plane.places[name]
    images, texts = (percent(part) for part in np.split(failed, [data.n_images]))
    far = np.linalg.norm(places - places.mean(axis=0), axis=1)
    inner = far <= np.median(far)
    where = "" if inner.all() else (
        f" Of the points in the inner half of the map {percent(failed[inner])} fail, of those in "
        f"the outer half {percent(failed[~inner])}.")
    return (f" {failed.sum():,} of {len(failed):,} are failures, their match not among the first "
            f"{FIRST}: {images} of the images, {texts} of the texts.{where}")


def _hubs(data: MapData, name: Hashable) -> str:
    """The strongest hub beside what chance would give, and how many are never found."""
    counts, (images, texts) = data.known[name].counts, (data.n_images, data.n_texts)
    expected = [min(FIRST, mine) * other / mine for mine, other in (
        (images, texts), (texts, images))]
    point = int((counts / np.repeat(expected, [images, texts])).argmax())
    image = point < images
    item = data.items[point] if image else f"“{shorten(data.items[point], LETTERS)}”"
    kind, queries = ("image", "texts") if image else ("text", "images")
    hub = item if item.startswith("image ") else f"the {kind} {item}"  # without an id it says so
    return (f" The strongest hub, beside the average of its kind, is {hub}: among the "
            f"first {FIRST} of {counts[point]:,} {queries}. On average an image is found "
            f"{number(expected[0], 1)} times and a text {number(expected[1], 1)} times; "
            f"{percent(counts == 0)} are never found.")


def _gains(data: MapData, name: Hashable) -> str:
    """Who is better off than by the other model."""
    shade = data.shades[name]["gain"]
    better, worse = int((shade.levels < 0.5).sum()), int((shade.levels > 0.5).sum())
    return (f" {better:,} find their match earlier here than by the other model, {worse:,} later, "
            f"{len(shade.levels) - better - worse:,} alike.")


def _change(data: MapData, colour: str) -> str:
    """From the first frame to the last."""
    first, last = data.names[0], data.names[-1]
    way = f" From {called(first)} to {called(last)}"
    if colour == "kind":
        before, after = (data.plane.places[name] for name in (first, last))
        moved = np.linalg.norm(after - before, axis=1) / spread(after)
        images, texts = (number(float(part.mean()), 2)
                         for part in np.split(moved, [data.n_images]))
        return (f"{way} an image moves by {images} and a text by {texts} on average, in the unit "
                f"of {called(last)}.")
    known = [data.known[name] for name in (first, last)]
    gains = [data.shades[name].get("gain") for name in (first, last)]
    what, masks = {
        "rank": ("failures", [one.ranks > FIRST for one in known]),
        "hub": ("those that are never found", [one.counts == 0 for one in known]),
        "gain": ("those that find their match earlier here",
                 [one is not None and one.levels < 0.5 for one in gains])}[colour]
    before, after = map(percent, masks)
    return f"{way} the share of {what} goes from {before} to {after}."


def percent(which: np.ndarray) -> str:
    """A share in words.

    Example:
        >>> percent(np.array([True, False, False])), percent(np.array([False]))
        ('33 %', '0 %')
    """
    return f"{number(100 * float(np.mean(which)), 0)} %"


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The distance of two places (2,)."""
    return float(np.linalg.norm(one - other))


def spread(places: np.ndarray) -> float:
    """The mean distance of places (n, 2) from their middle; 1 where all are one."""
    return float(np.linalg.norm(places - places.mean(axis=0), axis=1).mean()) or 1.0
