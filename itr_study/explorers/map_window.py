"""What of a map is shown, and the rectangle on it that chooses."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from itr_study.checks import check_number
from itr_study.explorers.heard import number_of, parts_of, quoted

NEAREST = 100  # times larger than the whole: as far as one can zoom in
STEP = 0.4  # of half the side shown: one such step


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
