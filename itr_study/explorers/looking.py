"""Where does it look? A heat map over a picture for every word of a text, or every head."""

from collections.abc import Callable, Mapping
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.data.base import Split
from itr_study.data.picture_files import as_rgb
from itr_study.digits import number
from itr_study.evaluation.looks import KINDS, Look, Looker
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider, words
from itr_study.explorers.messages import index_of, parts_of, written_index
from itr_study.explorers.pictures import thumbnail_uri
from itr_study.explorers.ranked import Ranked, check_finite, check_models
from itr_study.metrics.attention import pixel_map
from itr_study.plots.heads import FEW, heat_colours, heat_over, heat_scale, word_maps

SIDE, HEAT = 300, 200  # pixels: of the picture on the page, of a map that is laid over it
LISTED = 8  # regions whose weights are listed, the largest first
NAMED = 3  # regions that the sentence tells
SHADES = 24  # colours of the legend
KEPT = 50  # looks that are kept
SORTS = {"plain": "in the order of the split", "failures": "largest failures first"}
PICTURES = {"own": "its own", "first": "the one found first", "other": "another, by its number"}


class Looking(Explorer):
    """What trained models look at in a picture, for a text, word by word.

    Args:    searchers: one or more, by how a reader calls them, over one split with texts.
    Raises:  ValueError as `check_models`, as `Looker`, and by its name for a model that has
             diverged, as the score of the first pair tells.
    """

    drawing, title = "looking", "Where does it look?"

    def __init__(self, searchers: Mapping[str, Searcher]) -> None:
        check_models("Looking", searchers)
        self.lookers = {name: Looker(one) for name, one in searchers.items()}
        self._ranked = cache(lambda name: Ranked(name, searchers[name]))  # may take minutes
        self.model, self.sort, self.which = next(iter(searchers)), "plain", "own"
        self.kind, self.place, self.row = self.looker.kinds[0], 0, 0
        self.image = int(self.split.image_of_text[0])
        self._looks = lru_cache(KEPT)(self._look)
        for name in searchers:
            check_finite(name, self.lookers[name].score(self.image, 0))

    # What a reader does

    def choose_model(self, name: str) -> None:
        """Another model, for the same text; it shows the same kind where it has it."""
        check_choice("model", name, self.lookers)
        place = int(np.flatnonzero(self._in_order(name, self.sort) == self.text)[0])
        self._show(place, model=name)
        self.kind = self.kind if self.kind in self.looker.kinds else self.looker.kinds[0]

    def choose_kind(self, kind: str) -> None:
        """Another thing that the model shows."""
        check_choice("what is shown", kind, self.looker.kinds)
        self.kind, self.row = kind, 0

    def order(self, sort: str) -> None:
        """Another order of texts, and the first of it."""
        check_choice("order of texts", sort, SORTS)
        self._show(0, sort=sort)

    def go(self, place: float) -> None:
        """The text in this place of the order, from 1. Raises: ValueError where there is none."""
        self._show(index_of(place, len(self.split.texts)))

    def ask(self, text: int) -> None:
        """The text of this index, from 0. Raises: ValueError where there is none."""
        check_count("text", text, least=0, most=len(self.split.texts) - 1)
        self.go(int(np.flatnonzero(self.texts() == text)[0]) + 1)

    def choose_picture(self, which: str) -> None:
        """The picture that the text belongs to, the one that the model finds first for it, or the
        one that is shown, to be changed by its number."""
        check_choice("picture", which, PICTURES)
        self.image, self.which = self._image(self.model, self.text, which), which

    def write_picture(self, written: str) -> None:
        """The picture of the number that a reader wrote, from 1."""
        self.image = written_index("Picture", written, len(self.split.image_ids))
        self.which = "other"

    def point(self, given: Mapping[str, Any]) -> None:
        """The word, or the head, of this index. Raises: ValueError where there is none."""
        (row,) = parts_of("a word", given, "index")
        check_count("index", row, least=0, most=len(self.selected.rows) - 1)
        self.row = int(row)

    def _show(self, place: int, model: str | None = None, sort: str | None = None) -> None:
        """The text in a place, from 0, by another model or in another order; what may fail comes
        first. A picture chosen by its number stays for another model alone."""
        which = "own" if self.which == "other" and model is None else self.which
        model, sort = model or self.model, sort or self.sort
        image = self._image(model, int(self._in_order(model, sort)[place]), which)
        self.model, self.sort, self.place, self.row = model, sort, place, 0
        self.image, self.which = image, which

    def _image(self, model: str, text: int, which: str) -> int:
        if which == "first":
            return int(self.lookers[model].searcher.scores_for(text=text).argmax())
        return self.image if which == "other" else int(self.split.image_of_text[text])

    # What there is

    @property
    def looker(self) -> Looker:
        """Of the model that is shown."""
        return self.lookers[self.model]

    @cached_property
    def split(self) -> Split:
        """The images and texts that are looked at."""
        return next(iter(self.lookers.values())).searcher.split

    def texts(self) -> np.ndarray:
        """All texts in the order chosen."""
        return self._in_order(self.model, self.sort)

    def _in_order(self, model: str, sort: str) -> np.ndarray:
        if sort == "plain":
            return np.arange(len(self.split.texts))
        return np.argsort(-self._ranked(model).match_ranks["t2i"], kind="stable")

    @property
    def text(self) -> int:
        """Index of the text, from 0."""
        return int(self.texts()[self.place])

    @property
    def selected(self) -> Look:
        """What the model looks at, all rows of it; `row` is the one that is pointed at."""
        return self._looks(self.model, self.image, self.text, self.kind)

    @property
    def table(self) -> pd.DataFrame:
        """The same, a line for each row and region; the box in fractions of the picture."""
        seen = self.selected
        return pd.DataFrame([
            (name, int(region) + 1, weight, *box)
            for name, of_row in zip(seen.rows, seen.weights.tolist(), strict=True)
            for region, weight, box in zip(seen.regions, of_row, seen.boxes.tolist(), strict=True)],
            columns=["row", "region", "weight", "left", "top", "right", "bottom"])

    def controls(self) -> list[Control]:
        texts, images = len(self.split.texts), len(self.split.image_ids)
        models = [choice("model", "Model", self.model, {name: name for name in self.lookers})]
        return [*(models if len(self.lookers) > 1 else []),
                choice("kind", "Shown", self.kind, {k: KINDS[k] for k in self.looker.kinds}),
                choice("sort", "Texts", self.sort, SORTS),
                button("previous", "Previous text", off=self.place == 0),
                slider("go", "Place in this order", self.place + 1, 1, texts, 1,
                       f"{self.place + 1:,} of {texts:,}"),
                button("next", "Next text", off=self.place == texts - 1),
                words("text", f"Text, 1 to {texts:,}", f"{self.text + 1:,}", letters=6),
                choice("which", "Picture", self.which, PICTURES),
                words("picture", f"Picture, 1 to {images:,}", f"{self.image + 1:,}", letters=6)]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"model": self.choose_model, "kind": self.choose_kind, "sort": self.order,
                "previous": lambda _: self.go(self.place), "go": self.go,
                "next": lambda _: self.go(self.place + 2),
                "text": lambda written: self.ask(
                    written_index("Text", written, len(self.split.texts))),
                "which": self.choose_picture, "picture": self.write_picture, "point": self.point}

    def stage(self) -> dict[str, Any]:
        seen, picture = self.selected, self._open()
        scale, few = heat_scale(seen.weights, seen.boxes), len(seen.boxes) <= FEW
        wide, high = picture.size
        return {"text": self.split.texts[self.text], "picture": thumbnail_uri(picture, SIDE),
                "size": [SIDE, SIDE * high // wide], "said": self._pair(),
                "score": f"score {number(seen.score, 3)}", "means": seen.means, "row": self.row,
                "rows": [self._row(place, picture, scale) for place in range(len(seen.rows))],
                "boxes": [[int(region) + 1, *box] for region, box in zip(
                    seen.regions, seen.boxes.tolist(), strict=True)
                    if few and np.isfinite(box).all()],
                "scale": {"colours": heat_colours(np.linspace(0, scale.vmax, SHADES), scale),
                          "ends": [number(0, 2), number(scale.vmax, 2)]},
                "ranks": [] if seen.by_rank is None else [
                    number(value, 2) for value in seen.by_rank[:LISTED].tolist()]}

    def _look(self, model: str, image: int, text: int, kind: str) -> Look:
        check_finite(model, (seen := self.lookers[model].look(image, text, kind)).score)
        return seen

    def _row(self, place: int, picture: Image.Image, scale: Normalize) -> dict[str, Any]:
        """One word or head: its map, and its largest weights."""
        seen = self.selected
        weights = seen.weights[place]
        heat = 255 * heat_over(picture, pixel_map(weights, seen.boxes, HEAT), scale)
        return {"name": seen.rows[place], "says": self._says(place),
                "heat": thumbnail_uri(Image.fromarray(heat.round().astype(np.uint8)), HEAT),
                "largest": [{"region": self._named(at), "weight": number(weights[at], 3),
                             "share": float(weights[at])} for at in largest(weights, LISTED)],
                "rest": number(1 - float(weights[largest(weights, LISTED)].sum()), 3)}

    def _open(self) -> Image.Image:
        return as_rgb(self.looker.searcher.dataset.open_image(self.split.image_ids[self.image]))

    def _named(self, at: int) -> str:
        """A region that exists, counted from 1 as the data has it."""
        seen = self.selected
        nowhere = "" if np.isfinite(seen.boxes[at]).all() else " (lies nowhere that is known)"
        return f"region {seen.regions[at] + 1:,}{nowhere}"

    def _says(self, place: int) -> str:
        """What a row looks at, in words."""
        seen = self.selected
        told = [f"{self._named(at)} ({number(seen.weights[place, at], 2)})"
                for at in largest(seen.weights[place], NAMED)]
        listed = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
        name = f"“{seen.rows[place]}”" if seen.kind == "words" else seen.rows[place].capitalize()
        return f"{name}: most at {listed}."

    def _pair(self) -> str:
        """The text and the picture that are looked at."""
        own = self.image == self.split.image_of_text[self.text]
        picture = "its own picture" if own else "a picture of another text"
        return f"Text {self.text + 1:,} and {picture}, picture {self.image + 1:,}"

    def sentence(self) -> str:
        seen = self.selected
        top = int(seen.weights.max(axis=1).argmax())
        sharpest = f" Of all {len(seen.rows)}, “{seen.rows[top]}” looks most at one region, " \
            f"{number(seen.weights[top].max(), 2)}." if len(seen.rows) > 1 else ""
        ranks = "" if seen.by_rank is None else (
            " Of a feature's values the largest counts "
            f"{number(seen.by_rank[0], 2)}, where the mean would give each "
            f"{number(1 / len(seen.by_rank), 2)}.")
        return (f"{self._pair()}: {self.model} gives score {number(seen.score, 3)}. "
                f"{self._says(self.row)}{sharpest}{ranks}")

    def picture(self) -> Figure:
        seen = self.selected
        return word_maps(self._open(), seen.rows, seen.weights, seen.boxes, seen.score,
                         f"{self.model}, “{self.split.texts[self.text]}”", seen.means)


def largest(weights: np.ndarray, most: int) -> list[int]:
    """The places of the largest weights (R,), the first of equals first.

    Example:
        >>> largest(np.array([0.2, 0.5, 0.2, 0.1]), 3)
        [1, 0, 2]
    """
    return np.argsort(-weights, kind="stable")[:most].tolist()
