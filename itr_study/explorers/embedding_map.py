"""Map: the images and texts of a split on a plane; a rectangle chooses those to look at."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count, check_number
from itr_study.digits import number
from itr_study.evaluation.evaluate import as_vectors
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button, choice, list_ticks, slider
from itr_study.explorers.map_data import FINEST, Frame, MapData, pick_far
from itr_study.explorers.messages import quote, read_number, read_parts
from itr_study.explorers.ranked import check_models
from itr_study.metrics.scores import AnyScores
from itr_study.plots.retrieval import STEPS, Shade, colours_of, embedding_map

NEAREST = 100  # times larger than the whole: as far as one can zoom in
STEP = 0.4  # of half the side shown: one press of a button
GALLERY = 12  # items next to the map, at most
ASKED = 100  # arrays and pictures that are sent at once
FINE = 20  # presses of an arrow key from the middle to the edge
# Buttons that move the view: label, steps to the right and upwards, how much nearer.
MOVES = {"nearer": ("Zoom in", 0, 0, 1.5), "farther": ("Zoom out", 0, 0, 1 / 1.5),
         "left": ("Left", -1, 0, 1), "right": ("Right", 1, 0, 1), "up": ("Up", 0, 1, 1),
         "down": ("Down", 0, -1, 1)}


class MapWindow:
    """The square of a map that is shown, by `centre` (2,) and `half` its side, and a rectangle.

    The rectangle has `corners` (2, 2), the low one first; middle and whole are those of the map.
    """

    def __init__(self, middle: np.ndarray, whole: float) -> None:
        self.middle, self.whole = middle, whole
        self.show_all()
        self.fit_rectangle()

    def show_all(self, _: Any = None) -> None:
        """Show the whole map."""
        self.centre, self.half = self.middle.copy(), self.whole

    def look_at(self, window: Mapping[str, Any]) -> None:
        """Show another part: {"x", "y": its middle, "half": half its side}."""
        names = ("x", "y", "half")
        for name, value in zip(names, read_parts("a window", window, *names), strict=True):
            check_number(name, read_number(name, value), above=0 if name == "half" else -np.inf)
        self.half = float(min(max(window["half"], self.whole / NEAREST), self.whole))
        room = self.whole - self.half  # so that nothing outside the whole is shown
        self.centre = np.clip([window["x"], window["y"]], self.middle - room, self.middle + room)

    def move(self, right: int, up: int, nearer: float, _: Any = None) -> None:
        """Move by one press of a button."""
        x, y = (self.centre + STEP * self.half * np.array([right, up])).tolist()
        self.look_at({"x": x, "y": y, "half": self.half / nearer})

    def brush(self, moved: Mapping[str, Any]) -> None:
        """Put the rectangle elsewhere: {"x": [left, right], "y": [low, high]}, cut to the map."""
        ends = read_parts("a rectangle", moved, "x", "y")
        for name, pair in zip(("x", "y"), ends, strict=True):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"{name} of a rectangle must be its two ends, got {quote(pair)}")
            for end in pair:
                read_number(f"{name} of the rectangle", end)
        self.corners = np.clip(np.sort(np.array(ends, float).T, axis=0), self.middle - self.whole,
                               self.middle + self.whole)

    def fit_rectangle(self, _: Any = None) -> None:
        """Put the rectangle into the middle of what is shown, a third as wide and as high."""
        self.corners = np.stack([self.centre - self.half / 3, self.centre + self.half / 3])


class EmbeddingMap(Explorer):
    """Images and texts on the first two principal components of the last frame.

    Args:
        frames: name, such as an epoch -> vectors of the same images (I, D) and texts (T, D).
        image_of_text: (T,) the image of each text.
        texts: T.
        image_ids: I; None: "image 1" and so on.
        picture: gives the picture of an image id; None: they have none.
        other: scores (I, T) of a second model, whose ranks are subtracted.
        scores: (I, T) of the model itself, of one frame, if they are not the inner products.
    Raises: ValueError: NaN, or anything that is not of the same images and texts.
    """

    drawing, title = "map", "Map of images and texts"

    def __init__(self, frames: Mapping[Hashable, Frame], image_of_text: np.ndarray,
                 texts: Sequence[str], image_ids: Sequence[str] | None = None,
                 picture: Callable[[str], Image.Image] | None = None,
                 other: AnyScores | None = None, scores: AnyScores | None = None) -> None:
        self.data = MapData(frames, image_of_text, texts, image_ids, picture, other, scores)
        self.frame, self.colour, self.asked = len(self.data.names), "kind", dict[str, str]()
        self.window = MapWindow(self.data.middle, self.data.whole)
        self.events = {"window": self.window.look_at, "brush": self.window.brush, "send": self.send}

    @classmethod
    def of(cls, models: Mapping[str, Searcher],
           frames: Mapping[Hashable, Frame] | None = None) -> "EmbeddingMap":
        """Draw the map of a split as a trained model encodes it.

        Args:
            models: one or two by name; the second gives its ranks for the difference.
            frames: vectors to show instead of the first model's, such as of every epoch.
        """
        check_models(cls.__name__, models, most=2)
        searcher, *others = models.values()
        split, scores = searcher.split, None
        if frames is None:
            try:
                vectors = as_vectors(searcher.model, searcher.images, searcher.texts)
            except ValueError as error:  # several vectors of each
                raise ValueError("a map needs one point for each image and each text: "
                                 f"{error}; or give vectors yourself: EmbeddingMap({{'mean': "
                                 "(images, texts)}, ...)") from error
            frames, scores = {searcher.name: vectors}, searcher.scores
        return cls(frames, split.image_of_text, split.texts, split.image_ids,
                   searcher.dataset.open_image, others[0].scores if others else None, scores)

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
        """What is in the rectangle, as `MapData.table` lists it."""
        return self.data.table(self.name, self.data.find_inside(self.name, self.window.corners))

    def handle(self, name: str, value: Any = None) -> None:
        """Do what the reader did; arrays are sent once."""
        self.asked = {}
        super().handle(name, value)

    def choose_colour(self, colour: str) -> None:
        """Colour the points by something else."""
        check_choice("colour", colour, self.data.shades[self.name])
        self.colour = colour

    def choose_frame(self, frame: int) -> None:
        """Show another frame, counted from 1."""
        check_count("frame", frame, 1, len(self.data.names))
        self.frame = int(frame)

    def send(self, keys: Sequence[str]) -> None:
        """Put arrays and pictures into the next stage; those that fail are named in ValueError."""
        if not isinstance(keys, list | tuple) or len(keys) > ASKED:
            raise ValueError(f"there are no more than {ASKED} names to ask for; got {quote(keys)}")
        lost = []
        for key in keys:
            try:
                self.asked[key] = self.data.encode(key)
            except (OSError, ValueError) as error:
                lost.append(f"{key} could not be sent: {error}")
        if lost:
            raise ValueError("; ".join(lost))

    def controls(self) -> list[Control]:
        """List what can be set."""
        names, window = self.data.names, self.window
        label = "Epoch" if all(isinstance(name, int) for name in names) else "Vectors"
        frame = slider("frame", label, self.choose_frame, self.frame, 1, len(names), 1,
                       str(self.name))
        return [choice("colour", "Colour", self.choose_colour, self.colour,
                       {name: shade.label for name, shade in self.data.shades[self.name].items()}),
                *([frame] if len(names) > 1 else []),
                *(button(name, label, partial(window.move, *move))
                  for name, (label, *move) in MOVES.items()),
                button("all", "Whole map", window.show_all),
                button("into_view", "Rectangle into view", window.fit_rectangle)]

    def stage(self) -> dict[str, Any]:
        """Return view, rectangle, legend and gallery; points are named, and sent when asked."""
        data, frame, window = self.data, self.frame - 1, self.window
        (left, low), (right, high) = window.corners.tolist()
        x, y = window.centre.tolist()
        shade = self.shade
        filled, hollow = shade.meaning if shade.hollow.any() else ("", "")
        legend = {"label": shade.label, "ticks": [list(tick) for tick in shade.ticks],
                  "light": colours_of(shade), "dark": colours_of(shade, "dark"),
                  "filled": filled, "hollow": hollow}
        return {"images": data.n_images, "texts": data.n_texts,
                "places": f"places/{frame}", "shade": f"shade/{self.colour}/{frame}",
                "sent": self.asked, "whole": [*data.middle.tolist(), data.whole],
                "window": {"x": x, "y": y, "half": window.half},
                "fine": window.half / FINE, "finest": FINEST, "nearest": NEAREST, "steps": STEPS,
                "rectangle": {"x": [left, right], "y": [low, high]}, "axes": list(self.labels()),
                "ticks": [list_ticks(at - window.half, at + window.half) for at in (x, y)],
                "legend": legend, "gallery": self.gallery(),
                "chosen": len(data.find_inside(self.name, window.corners))}

    def labels(self) -> tuple[str, str]:
        """Return the labels of the axes, with the variance that they keep."""
        kept = self.data.plane.shares[self.name]
        return tuple(f"component {axis}, {number(100 * share, 1)} % of the variance"
                     for axis, share in enumerate(kept, start=1))

    def gallery(self) -> list[dict[str, Any]]:
        """Return a few images and texts of the rectangle, far from each other."""
        data, places = self.data, self.data.plane.places[self.name]
        corners = self.window.corners
        inside, middle = data.find_inside(self.name, corners), corners.mean(axis=0)
        images, texts = inside[inside < data.n_images], inside[inside >= data.n_images]
        most = max(GALLERY // 2, GALLERY - len(texts))
        images = images[pick_far(places[images], middle, most)]
        texts = texts[pick_far(places[texts], middle, GALLERY - len(images))]
        chosen = np.concatenate([images, texts])
        shown = data.n_images if data.picture is not None else 0
        return [{"kind": line.kind, "item": line.item, "rank": line.rank, "found": line.found,
                 "place": places[point].tolist(), "says": data.first_text.get(int(point), ""),
                 "picture": f"picture/{point}" * bool(point < shown)}
                for point, line in zip(chosen, data.table(self.name, chosen).itertuples(),
                                       strict=True)]

    def numbers(self) -> dict[str, str]:
        """Return what the colour shows, in all frames by its first number, and the rectangle."""
        data, inside, names = self.data, self.selected, self.data.names
        kept = number(100 * data.plane.shares[self.name].sum(), 1)
        told = {"frame": f"{self.name} of {names[-1]}"} if len(names) > 1 else {}
        told |= {"images, texts": f"{data.n_images:,}, {data.n_texts:,}",
                 "variance kept": f"{kept} %"} | data.numbers(self.name, self.colour)
        for name in dict.fromkeys([names[0], names[-1]]) if len(names) > 1 else ():
            label, value = next(iter(data.numbers(name, self.colour).items()))
            told[f"{label}, {name}"] = value
        if self.colour == "kind" and len(names) > 1:
            first, last = (data.plane.places[name] for name in (names[0], names[-1]))
            moved = np.linalg.norm(last - first, axis=1) / data.spread(names[-1])
            for kind, part in zip(("images", "texts"), np.split(moved, [data.n_images]),
                                  strict=True):
                told[f"{kind} moved on average"] = number(float(part.mean()), 2)
        images = int((inside["kind"] == "image").sum())
        told["images, texts in the rectangle"] = f"{images:,}, {len(inside) - images:,}"
        medians = f"all {number(float(np.median(data.known[self.name].ranks)), 0)}"
        if len(inside):
            medians = f"rectangle {number(inside['rank'].median(), 0)}, {medians}"
        return told | {"median rank of the match": medians}

    def picture(self) -> Figure:
        """Draw the points that are shown and the rectangle."""
        title = self.title + f" ({self.name})" * (len(self.data.names) > 1)
        return embedding_map(self.data.plane.places[self.name], self.data.n_images, self.shade,
                             title, self.labels(), (self.window.centre, self.window.half),
                             tuple(self.window.corners.T),
                             "dashed: the rectangle of what is chosen")
