"""Map: the images and texts of a split on a plane; a rectangle chooses those to look at."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count, check_number
from itr_study.digits import counted, number
from itr_study.evaluation.evaluate import as_vectors
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider, ticks_between
from itr_study.explorers.map_data import FINEST, FIRST, Frame, MapData, spread_out
from itr_study.explorers.messages import number_of, parts_of, quoted
from itr_study.explorers.ranked import check_models
from itr_study.metrics.scores import AnyScores
from itr_study.plots.embedding_map import STEPS, Shade, colours_of, embedding_map

NEAREST = 100  # times larger than the whole: as far as one can zoom in
STEP = 0.4  # of half the side shown: one such step
LETTERS = 60  # of a text that is named
GALLERY = 12  # items beside the map, at most
ASKED = 100  # arrays and pictures that are sent at once
FINE = 20  # presses of an arrow key from the middle to the edge
# Buttons that move the view: label, steps to the right and upwards, how much nearer.
MOVES = {"nearer": ("Zoom in", 0, 0, 1.5), "farther": ("Zoom out", 0, 0, 1 / 1.5),
         "left": ("Left", -1, 0, 1), "right": ("Right", 1, 0, 1), "up": ("Up", 0, 1, 1),
         "down": ("Down", 0, -1, 1)}


class MapWindow:
    """A square part of a map, and a rectangle: at first the whole, and its middle.

    Attributes: centre (2,), half: the middle of what is shown, and half its side; corners (2, 2):
                of the rectangle, the low one first.
    Args:       middle: (2,) of the map; whole: half its side.
    """

    def __init__(self, middle: np.ndarray, whole: float) -> None:
        self.middle, self.whole = middle, whole
        self.show_all()
        self.into_view()

    def show_all(self, _: Any = None) -> None:
        """Show the whole map."""
        self.centre, self.half = self.middle.copy(), self.whole

    def look_at(self, window: Mapping[str, Any]) -> None:
        """Show another part: {"x", "y": its middle, "half": half its side}. Raises: ValueError for
        what is no part."""
        names = ("x", "y", "half")
        for name, value in zip(names, parts_of("a window", window, *names), strict=True):
            check_number(name, number_of(name, value), above=0 if name == "half" else -np.inf)
        self.half = float(min(max(window["half"], self.whole / NEAREST), self.whole))
        room = self.whole - self.half  # so that nothing beside the whole is shown
        self.centre = np.clip([window["x"], window["y"]], self.middle - room, self.middle + room)

    def move(self, right: int, up: int, nearer: float, _: Any = None) -> None:
        """One press of a button: a step aside, or nearer."""
        x, y = (self.centre + STEP * self.half * np.array([right, up])).tolist()
        self.look_at({"x": x, "y": y, "half": self.half / nearer})

    def brush(self, moved: Mapping[str, Any]) -> None:
        """Put the rectangle elsewhere: {"x": [left, right], "y": [low, high]}, cut to the map.
        Raises: ValueError for what is no rectangle."""
        ends = parts_of("a rectangle", moved, "x", "y")
        for name, pair in zip(("x", "y"), ends, strict=True):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"{name} of a rectangle must be its two ends, got {quoted(pair)}")
            for end in pair:
                number_of(f"{name} of the rectangle", end)
        self.corners = np.clip(np.sort(np.array(ends, float).T, axis=0), self.middle - self.whole,
                               self.middle + self.whole)

    def into_view(self, _: Any = None) -> None:
        """Put the rectangle into the middle of what is shown, a third as wide and as high."""
        self.corners = np.stack([self.centre - self.half / 3, self.centre + self.half / 3])


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


class EmbeddingMap(Explorer):
    """Images and texts on the first two principal components of the last frame.

    Args:    frames: name, such as an epoch -> vectors of the same images (I, D) and texts (T, D),
             in order; image_of_text: (T,) the image of each text; texts: T; image_ids: I, None =
             "image 1" and so on; picture: gives the picture of an image id, None = they have none;
             other: scores (I, T) of a second model, whose ranks are subtracted; scores: (I, T) of
             the model itself, where there is one frame and they are not the inner products.
    Raises:  ValueError for frames that are not of the same images and texts or hold NaN, and
             whatever else differs from them in number.
    """

    drawing, title = "map", "Map of images and texts"

    def __init__(self, frames: Mapping[Hashable, Frame], image_of_text: np.ndarray,
                 texts: Sequence[str], image_ids: Sequence[str] | None = None,
                 picture: Callable[[str], Image.Image] | None = None,
                 other: AnyScores | None = None, scores: AnyScores | None = None) -> None:
        self.data = MapData(frames, image_of_text, texts, image_ids, picture, other, scores)
        self.frame, self.colour, self.asked = len(self.data.names), "kind", dict[str, str]()
        self.window = MapWindow(self.data.middle, self.data.whole)

    @classmethod
    def of(cls, models: Mapping[str, Searcher],
           frames: Mapping[Hashable, Frame] | None = None) -> "EmbeddingMap":
        """The map of a split as a trained model encodes it.

        Args:    models: one or two by name; the first is drawn, the second lends its ranks for the
                 difference; frames: other vectors of the split in the place of the first model's,
                 such as those of `lab.studies.nb10_explorers.epoch_frames`.
        Raises:  ValueError as `check_models`, and for a model that gives an image or a text several
                 vectors; with frames, as the class.
        """
        check_models(cls.__name__, models, most=2)
        searcher, *others = models.values()
        split, own = searcher.split, frames is None
        return cls({searcher.name: vectors_of(searcher)} if own else frames,
                   split.image_of_text, split.texts, split.image_ids, searcher.dataset.open_image,
                   other=others[0].scores if others else None,
                   scores=searcher.scores if own else None)

    @property
    def name(self) -> Hashable:
        """Of the frame shown."""
        return self.data.names[self.frame - 1]

    @property
    def shade(self) -> Shade:
        """What the points are coloured by now."""
        return self.data.shades[self.name][self.colour]

    @property
    def selected(self) -> pd.DataFrame:
        """What lies in the rectangle, a line each: kind, index in the split, item (the image's id,
        or the text), rank of its match, found (of how many queries it is among the first FIRST)."""
        return self.data.table(self.name, self.data.inside(self.name, self.window.corners))

    def handle(self, name: str, value: Any = None) -> None:
        self.asked = {}  # arrays are sent where they are asked for, and not again
        super().handle(name, value)

    def choose_colour(self, colour: str) -> None:
        """Colour the points by something else. Raises: ValueError for what is not known here."""
        check_choice("colour", colour, self.data.shades[self.name])
        self.colour = colour

    def choose_frame(self, frame: int) -> None:
        """Show another frame, counted from 1."""
        check_count("frame", frame, 1, len(self.data.names))
        self.frame = int(frame)

    def send(self, keys: Sequence[str]) -> None:
        """Put arrays and pictures into the next stage, once. Raises: ValueError for those that are
        not there, or cannot be opened; the others are sent."""
        if not isinstance(keys, list | tuple) or len(keys) > ASKED:
            raise ValueError(f"there are no more than {ASKED} names to ask for; got {quoted(keys)}")
        lost = []
        for key in keys:
            try:
                self.asked[key] = self.data.packed(key)
            except (OSError, ValueError) as error:
                lost.append(f"{key} could not be sent: {error}")
        if lost:
            raise ValueError("; ".join(lost))

    def controls(self) -> list[Control]:
        names = self.data.names
        epochs = all(isinstance(name, int) for name in names)
        frame = slider("frame", "Epoch" if epochs else "Vectors", self.frame, 1, len(names), 1,
                       str(self.name))
        return [choice("colour", "Colour", self.colour,
                       {name: shade.label for name, shade in self.data.shades[self.name].items()}),
                *([frame] if len(names) > 1 else []),
                *(button(name, label) for name, (label, *_) in MOVES.items()),
                button("all", "Whole map"), button("into_view", "Rectangle into view")]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        window = self.window
        moves = {name: partial(window.move, *move) for name, (_, *move) in MOVES.items()}
        return {"colour": self.choose_colour, "frame": self.choose_frame, "window": window.look_at,
                "brush": window.brush, "send": self.send, "all": window.show_all,
                "into_view": window.into_view, **moves}

    def stage(self) -> dict[str, Any]:
        data, frame, window = self.data, self.frame - 1, self.window
        (left, low), (right, high) = window.corners.tolist()
        return {"images": data.n_images, "texts": data.n_texts, "name": self.named(),
                "places": f"places/{frame}", "shade": f"shade/{self.colour}/{frame}",
                "sent": self.asked, "whole": [*data.middle.tolist(), data.whole],
                "window": {"x": float(window.centre[0]), "y": float(window.centre[1]),
                           "half": window.half},
                "fine": window.half / FINE, "finest": FINEST, "nearest": NEAREST, "steps": STEPS,
                "rectangle": {"x": [left, right], "y": [low, high]},
                "axes": list(self.labels()), "ticks": self.ticks(), "legend": self.legend(),
                "gallery": self.gallery(), "chosen": len(data.inside(self.name, window.corners))}

    def named(self) -> str:
        """The frame shown, where there are several."""
        names = self.data.names
        of = f" of {names[-1]}" if isinstance(self.name, int) else f", {self.frame} of {len(names)}"
        return (called(self.name) + of) * (len(names) > 1)

    def labels(self) -> tuple[str, str]:
        """Of the axes, with what they keep of the variance."""
        kept = self.data.plane.shares[self.name]
        return tuple(f"component {axis}, {number(100 * share, 1)} % of the variance"
                     for axis, share in enumerate(kept, start=1))

    def ticks(self) -> list[list[list[Any]]]:
        """Of each axis its places and what stands there."""
        half = self.window.half
        return [ticks_between(at - half, at + half) for at in self.window.centre.tolist()]

    def legend(self) -> dict[str, Any]:
        """What the colours and hollow marks mean."""
        shade = self.shade
        filled, hollow = shade.meaning if shade.hollow.any() else ("", "")
        return {"label": shade.label, "ticks": [list(tick) for tick in shade.ticks],
                "light": colours_of(shade), "dark": colours_of(shade, "dark"),
                "filled": filled, "hollow": hollow}

    def gallery(self) -> list[dict[str, Any]]:
        """A few images and texts of the rectangle, far from each other, with their places."""
        data, places = self.data, self.data.plane.places[self.name]
        corners = self.window.corners
        inside, middle = data.inside(self.name, corners), corners.mean(axis=0)
        images, texts = inside[inside < data.n_images], inside[inside >= data.n_images]
        most = max(GALLERY // 2, GALLERY - len(texts))
        images = images[spread_out(places[images], middle, most)]
        texts = texts[spread_out(places[texts], middle, GALLERY - len(images))]
        chosen = np.concatenate([images, texts])
        shown = data.n_images if data.picture is not None else 0
        return [{"kind": line.kind, "item": line.item, "rank": line.rank, "found": line.found,
                 "place": places[point].tolist(), "says": data.first_text.get(int(point), ""),
                 "picture": f"picture/{point}" * bool(point < shown)}
                for point, line in zip(chosen, data.table(self.name, chosen).itertuples(),
                                       strict=True)]

    def sentence(self) -> str:
        data, inside = self.data, self.selected
        known, images = data.known[self.name], int((inside["kind"] == "image").sum())
        frame = f"{self.named()}: ".capitalize() * (len(data.names) > 1)
        kept = number(100 * data.plane.shares[self.name].sum(), 1)
        rank = (f"; the median rank of their matches is {number(inside['rank'].median(), 0)}, of "
                f"all it is {number(float(np.median(known.ranks)), 0)}" if len(inside) else "")
        return (f"{frame}{counted(data.n_images, 'image')} (squares) and "
                f"{counted(data.n_texts, 'text')} (dots) on a plane that keeps {kept} % of the "
                f"variance.{finding(data, self.name, self.colour)} In the rectangle: "
                f"{counted(images, 'image')} and {counted(len(inside) - images, 'text')}{rank}.")

    def picture(self) -> Figure:
        return embedding_map(self.data.plane.places[self.name], self.data.n_images, self.shade,
                             self.title + f" ({self.named()})" * (len(self.data.names) > 1),
                             self.labels(), (self.window.centre, self.window.half),
                             tuple(self.window.corners.T),
                             "dashed: the rectangle of what is chosen")


def vectors_of(searcher: Searcher) -> Frame:
    """Images (I, D) and texts (T, D) as a model encodes a split. Raises: ValueError for a model
    that gives several vectors, and a split without texts."""
    try:
        return as_vectors(searcher.model, searcher.images, searcher.texts)
    except ValueError as error:
        raise ValueError(f"a map needs one point for each image and each text: {error}; or give "
                         "vectors yourself: EmbeddingMap({'mean': (images, texts)}, ...)"
                         ) from error
