"""A heat map over a picture for every word of a text, or every head."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.data.picture_files import as_rgb
from itr_study.digits import number
from itr_study.evaluation.looks import KINDS, Look, Looker
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import Control, Explorer, browse, choice, number_line
from itr_study.explorers.messages import read_parts
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.explorers.ranked import Ranked, check_finite, check_models
from itr_study.metrics.attention import pixel_map
from itr_study.plots.heads import FEW, heat_colours, heat_over, heat_scale, word_maps

SIDE, HEAT = 300, 200  # pixels: of the picture on the page, of a map that is laid over it
LISTED = 8  # regions whose weights are listed, the largest first
SHADES = 24  # colours of the legend
KEPT = 50  # looks that are kept
SORTS = {"plain": "in the order of the split", "failures": "largest failures first"}
PICTURES = {"own": "its own", "first": "the one found first", "other": "another, by its number"}


class Looking(Explorer):
    """What trained models look at in a picture, for a text, word by word.

    Args: searchers: one or more by name, over one split with texts.
    Raises: ValueError: as `check_models` and `Looker`; a model that has diverged.
    """

    drawing, title = "looking", "Heat maps of words"

    def __init__(self, searchers: Mapping[str, Searcher]) -> None:
        check_models("Looking", searchers)
        self.lookers = {name: Looker(one) for name, one in searchers.items()}
        self.split = next(iter(searchers.values())).split
        self._ranked = cache(lambda name: Ranked(name, searchers[name]))  # may take minutes
        self.model, self.sort, self.which = next(iter(searchers)), "plain", "own"
        self.kind, self.place, self.row = self.looker.kinds[0], 0, 0
        self.events = {"point": self.point}
        self.image = int(self.split.image_of_text[0])
        self._looks = lru_cache(KEPT)(self._look)
        for name in searchers:
            check_finite(name, self.lookers[name].score(self.image, 0))

    # What a reader does

    def choose_model(self, name: str) -> None:
        """Choose another model for the same text; what is shown stays if it has that kind."""
        check_choice("model", name, self.lookers)
        place = int(np.flatnonzero(self._sort_texts(name, self.sort) == self.text)[0])
        self._show(place, model=name)
        self.kind = self.kind if self.kind in self.looker.kinds else self.looker.kinds[0]

    def choose_kind(self, kind: str) -> None:
        """Choose what is shown of the model."""
        check_choice("what is shown", kind, self.looker.kinds)
        self.kind, self.row = kind, 0

    def order(self, sort: str) -> None:
        """Choose another order of texts, and show its first."""
        check_choice("order of texts", sort, SORTS)
        self._show(0, sort=sort)

    def ask(self, text: int) -> None:
        """Show the text of this index, from 0."""
        self._show(int(np.flatnonzero(self._sort_texts(self.model, self.sort) == text)[0]))

    def choose_picture(self, which: str) -> None:
        """Choose one of PICTURES for the text."""
        check_choice("picture", which, PICTURES)
        self.image, self.which = self._pick_image(self.model, self.text, which), which

    def show_picture(self, image: int) -> None:
        """Show the picture of this index, from 0."""
        self.image, self.which = image, "other"

    def point(self, given: Mapping[str, Any]) -> None:
        """Choose the word, or the head, of an index."""
        (row,) = read_parts("a word", given, "index")
        check_count("index", row, least=0, most=len(self.selected.rows) - 1)
        self.row = int(row)

    def _show(self, place: int, model: str | None = None, sort: str | None = None) -> None:
        """Show the text at a place, from 0; a picture chosen by number stays for a new model."""
        which = "own" if self.which == "other" and model is None else self.which
        model, sort = model or self.model, sort or self.sort
        text = int(self._sort_texts(model, sort)[place])
        image = self._pick_image(model, text, which)  # may fail, before anything is changed
        self.model, self.sort, self.place, self.row = model, sort, place, 0
        self.image, self.which = image, which

    def _pick_image(self, model: str, text: int, which: str) -> int:
        if which == "first":
            return int(self.lookers[model].searcher.scores_for(text=text).argmax())
        return self.image if which == "other" else int(self.split.image_of_text[text])

    # What is shown

    @property
    def looker(self) -> Looker:
        """Of the model that is shown."""
        return self.lookers[self.model]

    def _sort_texts(self, model: str, sort: str) -> np.ndarray:
        """Sort all texts."""
        if sort == "plain":
            return np.arange(len(self.split.texts))
        return np.argsort(-self._ranked(model).match_ranks["t2i"], kind="stable")

    @property
    def text(self) -> int:
        """Index of the text, from 0."""
        return int(self._sort_texts(self.model, self.sort)[self.place])

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
        """List what can be set."""
        texts, images = len(self.split.texts), len(self.split.image_ids)
        shown = [choice("kind", "Shown", self.choose_kind, self.kind,
                        {kind: KINDS[kind] for kind in self.looker.kinds}),
                 choice("sort", "Texts", self.order, self.sort, SORTS),
                 *browse("text", "Place in this order", self._show, self.place, texts),
                 number_line("text", "Text", self.ask, self.text, texts),
                 choice("which", "Picture", self.choose_picture, self.which, PICTURES),
                 number_line("picture", "Picture", self.show_picture, self.image, images)]
        if len(self.lookers) == 1:
            return shown
        return [choice("model", "Model", self.choose_model, self.model,
                       {name: name for name in self.lookers}), *shown]

    def stage(self) -> dict[str, Any]:
        """Return picture and text, and of every word its map and largest weights."""
        seen, picture = self.selected, self._open()
        scale, few = heat_scale(seen.weights, seen.boxes), len(seen.boxes) <= FEW
        wide, high = picture.size
        boxes = [[int(region) + 1, *box] for region, box in zip(seen.regions, seen.boxes.tolist(),
                                                                strict=True)
                 if few and np.isfinite(box).all()]
        return {"text": self.split.texts[self.text], "picture": encode_thumbnail(picture, SIDE),
                "size": [SIDE, SIDE * high // wide], "said": self._name_pair(),
                "means": seen.means, "row": self.row, "boxes": boxes,
                "rows": [self._describe_row(n, picture, scale) for n in range(len(seen.rows))],
                "scale": {"label": "weight", "ends": [number(0, 2), number(scale.vmax, 2)],
                          "colours": heat_colours(np.linspace(0, scale.vmax, SHADES), scale)},
                "ranks": [] if seen.by_rank is None else [
                    number(value, 2) for value in seen.by_rank[:LISTED].tolist()]}

    def _look(self, model: str, image: int, text: int, kind: str) -> Look:
        check_finite(model, (seen := self.lookers[model].look(image, text, kind)).score)
        return seen

    def _describe_row(self, place: int, picture: Image.Image, scale: Normalize) -> dict[str, Any]:
        seen = self.selected
        weights = seen.weights[place]
        largest = np.argsort(-weights, kind="stable")[:LISTED]
        heat = 255 * heat_over(picture, pixel_map(weights, seen.boxes, HEAT), scale)
        return {"name": seen.rows[place],
                "heat": encode_thumbnail(Image.fromarray(heat.round().astype(np.uint8)), HEAT),
                "largest": [{"region": self._name_region(at), "weight": number(weights[at], 3),
                             "share": float(weights[at])} for at in largest],
                "rest": number(1 - float(weights[largest].sum()), 3)}

    def _open(self) -> Image.Image:
        return as_rgb(self.looker.searcher.dataset.open_image(self.split.image_ids[self.image]))

    def _name_region(self, at: int) -> str:
        """Name a region that exists, counted from 1 as the data has it."""
        seen = self.selected
        nowhere = "" if np.isfinite(seen.boxes[at]).all() else " (without a place)"
        return f"region {seen.regions[at] + 1:,}{nowhere}"

    def _name_pair(self) -> str:
        own = self.image == self.split.image_of_text[self.text]
        whose = "its own" if own else "another"
        return f"Text {self.text + 1:,}, {whose} picture {self.image + 1:,}"

    def numbers(self) -> dict[str, str]:
        """Return the score, the largest weight of the row, and the most peaked row."""
        seen = self.selected
        at = int(seen.weights[self.row].argmax())
        told = {"pair": self._name_pair(), "model": self.model, "score": number(seen.score, 3),
                f"largest weight of “{seen.rows[self.row]}”":
                    f"{number(seen.weights[self.row, at], 2)}, {self._name_region(at)}"}
        if len(seen.rows) > 1:
            top = int(seen.weights.max(axis=1).argmax())
            told[f"largest weight of all {len(seen.rows)}"] = (
                f"{number(seen.weights[top].max(), 2)}, “{seen.rows[top]}”")
        if seen.by_rank is not None:
            told["weight of the largest value"] = number(seen.by_rank[0], 2)
            told["weight in the mean"] = number(1 / len(seen.by_rank), 2)
        return told

    def picture(self) -> Figure:
        """Draw a map for every word or head."""
        seen = self.selected
        return word_maps(self._open(), seen.rows, seen.weights, seen.boxes, seen.score,
                         self.title, f"{self.model}; {seen.means}")
