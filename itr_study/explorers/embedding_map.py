"""Map: the images and texts of a split on a plane; a rectangle chooses those to look at."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.digits import counted, number
from itr_study.evaluation.evaluate import as_vectors
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider
from itr_study.explorers.findings import called, finding
from itr_study.explorers.heard import quoted
from itr_study.explorers.map_data import FINEST, MapData
from itr_study.explorers.map_window import NEAREST, MapWindow
from itr_study.explorers.plane import Frame, spread_out
from itr_study.explorers.ticks import ticks_between
from itr_study.metrics.scores import AnyScores
from itr_study.plots.embedding_map import STEPS, Shade, colours_of, embedding_map

GALLERY = 12  # items beside the map, at most
ASKED = 100  # arrays and pictures that are sent at once
FINE = 20  # presses of an arrow key from the middle to the edge
# Buttons that move the view: label, steps to the right and upwards, how much nearer.
MOVES = {"nearer": ("Zoom in", 0, 0, 1.5), "farther": ("Zoom out", 0, 0, 1 / 1.5),
         "left": ("Left", -1, 0, 1), "right": ("Right", 1, 0, 1), "up": ("Up", 0, 1, 1),
         "down": ("Down", 0, -1, 1)}


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
    def of(cls, searcher: Searcher, other: Searcher | None = None,
           frames: Mapping[Hashable, Frame] | None = None) -> "EmbeddingMap":
        """The map of a split as a model encodes it.

        Args:    other: another model's, of the same split, for the difference of their ranks;
                 frames: other vectors of the split in the place of the model's, such as those of
                 `studies.epochs.epoch_frames`.
        Raises:  ValueError for a model that gives an image or a text several vectors, and a split
                 without texts; with frames, as the class.
        """
        split, own = searcher.split, frames is None
        return cls({searcher.name: vectors_of(searcher)} if own else frames,
                   split.image_of_text, split.texts, split.image_ids, searcher.dataset.open_image,
                   other=None if other is None else other.scores,
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

    def hear(self, name: str, value: Any = None) -> None:
        self.asked = {}  # arrays are sent where they are asked for, and not again
        super().hear(name, value)

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
