"""Push and pull: the scores of one query's list on a line, and what each loss would do to them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from itr_study.checks import MATCH, check_choice, check_number
from itr_study.digits import number
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider
from itr_study.explorers.heard import number_of, parts_of, quoted
from itr_study.explorers.pushes import (
    DOG,
    SLIDERS,
    WHOLE,
    Item,
    Push,
    asked,
    called,
    item_of,
    push_of,
)
from itr_study.losses import LOSSES
from itr_study.metrics.kendall import kendall_rows
from itr_study.metrics.ndcg import ndcg_rows
from itr_study.plots.push_pull import push_pull

STEP = 0.03  # how far one step moves the text that is moved most
STEPS = 200  # of "until the matches are first", at most


class PushPull(Explorer):
    """One query, its texts, their scores; and each loss with the arrows of its gradient.

    Args:    items: at least one match (relevance 1) and one other; loss: a name of LOSSES.
    Raises:  ValueError for items without a match or without another, relevance outside [0, 1],
             scores outside [-1, 1], and an unknown loss.
    """

    drawing, title = "push_pull", "Push and pull"

    def __init__(self, items: Sequence[Item] = DOG, loss: str = "triplet_hardest") -> None:
        check_choice("loss", loss, LOSSES)
        if isinstance(items, str) or not isinstance(items, Sequence):
            raise ValueError("items must be a list of (text, relevance, score), got "
                             f"{quoted(items)}")
        self.items = tuple(item_of(item) for item in items)
        for item in self.items:
            check_number(f"relevance of {item.text!r}", item.relevance, least=0, most=1)
            check_number(f"score of {item.text!r}", item.score, least=-1, most=1)
        matches = sum(item.relevance >= MATCH for item in self.items)
        if not 0 < matches < len(self.items):
            raise ValueError("a list needs at least one match (relevance 1) and one other text; "
                             f"got {matches} matches among {len(self.items)} texts")
        self.relevance = np.array([item.relevance for item in self.items], float)
        self.loss, self.said = loss, ""
        self.arguments: dict[str, dict[str, float]] = {name: {} for name in LOSSES}
        self.start()

    def start(self, _: Any = None) -> None:
        """All scores as they were given."""
        self.scores, self.said = np.array([item.score for item in self.items], float), ""

    def choose(self, loss: str) -> None:
        """Draw the arrows of another loss. Raises: ValueError for an unknown one."""
        check_choice("loss", loss, LOSSES)
        self.loss, self.said = loss, ""

    def drag(self, moved: Mapping[str, Any]) -> None:
        """Give one text another score: {"item": its place, "score": in [-1, 1]}."""
        place, score = parts_of("a text that is moved", moved, "item", "score")
        if type(place) is not int or not 0 <= place < len(self.items):
            raise ValueError(f"there is no text of index {quoted(place)}; indices go from 0 to "
                             f"{len(self.items) - 1}")
        check_number("score", number_of("score", score), least=-1, most=1)
        self.scores = self.scores.copy()
        self.scores[place], self.said = score, ""

    def set(self, argument: str, value: float) -> None:
        """An argument of the loss, within its slider: beyond, gradients may be no numbers."""
        label, least, most, _ = SLIDERS[self.loss][argument]
        check_number(label, value, least=least, most=most)
        value = int(value) if argument in WHOLE else float(value)
        LOSSES[self.loss](**self.arguments[self.loss] | {argument: value})
        self.arguments[self.loss][argument], self.said = value, ""

    def step(self, _: Any = None) -> bool:
        """Follow the gradient a little: the text that is moved most by STEP. False where nothing
        moves."""
        push, before = self.push(self.loss), self.scores
        if push.problem:
            raise ValueError(push.problem)
        size = np.abs(push.up).max()
        if size > 0:
            self.scores = np.clip(self.scores + STEP * push.up / size, -1, 1)
        moved = bool((self.scores != before).any())
        self.said = "" if moved else f"{self._rests()}: nothing moves."
        return moved

    def _rests(self) -> str:
        """Why nothing moves: without a gradient, or with one that leads beyond all scores."""
        name = called(self.loss)
        return (f"{name} pushes on, but all that it pushes stands at −1 or 1 already"
                if self.push(self.loss).up.any() else f"{name} is content")

    def run(self, _: Any = None) -> None:
        """Step until all matches stand first, or the loss is content, or STEPS are made."""
        made = 0
        while made < STEPS and not self.matches_first() and self.step():
            made += 1
        self.said = f"After {made} steps " + (
            "all matches stand first." if self.matches_first() else
            f"{self._rests()}, and a match still stands behind another text."
            if made < STEPS else "a match still stands behind another text.")

    def matches_first(self) -> bool:
        """Whether every match scores above every other text."""
        match = self.relevance >= MATCH
        return bool(self.scores[match].min() > self.scores[~match].max())

    def push(self, loss: str) -> Push:
        """What a loss does to the list as it is, at the arguments set for it."""
        return push_of(loss, self.arguments[loss], self.scores, self.relevance)

    def measures(self) -> dict[str, float]:
        """NDCG and Kendall's τ of the list as it is."""
        scores, relevance = (np.float32(x)[None] for x in (self.scores, self.relevance))
        return {"NDCG": float(ndcg_rows()(scores, relevance)[0]),
                "Kendall's τ": float(kendall_rows()(scores, relevance)[0])}

    def ranks(self) -> np.ndarray:
        """(n,) the place of each text, from 1; ties in the order of the list."""
        return np.argsort(np.argsort(-self.scores, kind="stable")) + 1

    def table(self) -> pd.DataFrame:
        """What every loss does to every text, a line each: loss, text, relevance, score, value of
        the loss, up (minus its gradient), felt (whether it moves the text at all)."""
        lines = [(called(loss), *item, score, push.value, up, felt) for loss in LOSSES
                 for push in [self.push(loss)] for (*item, _), score, up, felt in zip(
                     self.items, self.scores, push.up, push.felt, strict=True)]
        return pd.DataFrame(lines, columns=["loss", "text", "relevance", "score", "value", "up",
                                            "felt"])

    @property
    def selected(self) -> list[Item]:
        """The list as it is now, best first."""
        now = [item._replace(score=float(score))
               for item, score in zip(self.items, self.scores, strict=True)]
        return [now[place] for place in np.argsort(-self.scores, kind="stable")]

    def controls(self) -> list[Control]:
        sliders = SLIDERS[self.loss]
        made = LOSSES[self.loss](**self.arguments[self.loss])
        return [choice("loss", "Loss", self.loss, {name: called(name) for name in LOSSES}),
                *(slider(f"set-{name}", label, vars(made)[name], least, most, step)
                  for name, (label, least, most, step) in sliders.items()),
                button("step", "Step"), button("run", "Step until the matches are first"),
                button("start", "Start again")]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        sets = {f"set-{name}": lambda value, name=name: self.set(name, value)
                for name in SLIDERS[self.loss]}
        return {"loss": self.choose, "drag": self.drag, "step": self.step, "run": self.run,
                "start": self.start, **sets}

    def stage(self) -> dict[str, Any]:
        push = self.push(self.loss)
        largest = np.abs(push.up).max() or 1.0
        ranks = self.ranks()
        return {"loss": called(self.loss), "problem": push.problem,
                "items": [{"text": item.text, "relevance": item.relevance,
                           "match": item.relevance >= MATCH, "score": round(float(score), 4),
                           "up": float(up / largest), "felt": bool(felt), "rank": int(rank)}
                          for item, score, up, felt, rank in zip(
                              self.items, self.scores, push.up, push.felt, ranks, strict=True)],
                "losses": [self._line(name) for name in LOSSES]}

    def _line(self, loss: str) -> dict[str, Any]:
        """A loss in the table below: its value, and what it does to each text by its sign."""
        push = self.push(loss)
        signs = np.where(push.felt, np.sign(push.up), 0).astype(int)
        return {"name": called(loss), "chosen": loss == self.loss, "problem": push.problem,
                "value": "" if push.problem else number(push.value, 3), "signs": signs.tolist()}

    def sentence(self) -> str:
        push, measures = self.push(self.loss), self.measures()
        up, down = ((push.felt & (sign * push.up > 0)).sum() for sign in (1, -1))
        first = self.selected[0]
        did = push.problem or (
            f"{called(self.loss)} is {number(push.value, 3)}: it pulls up {up} and pushes down "
            f"{down} of {len(self.items)} texts, and leaves the others alone. "
            + asked(self.loss, self.arguments[self.loss], self.scores, self.relevance)).strip()
        shown = ", ".join(f"{name} {number(value, 2)}" for name, value in measures.items())
        return f"{self.said} {did} First stands “{first.text}”; {shown}.".strip()

    def picture(self) -> Figure:
        """The list under four losses that differ: a panel each."""
        shown = dict.fromkeys([self.loss, "triplet_hardest", "topk", "smooth_ndcg",
                               "kendall_window"])
        pushes = {called(loss): self.push(loss) for loss in list(shown)[:4]}
        return push_pull([item.text for item in self.items], self.scores, self.relevance,
                         {name: push.up for name, push in pushes.items()},
                         {name: push.felt for name, push in pushes.items()},
                         "One list of texts, and where each loss pushes it")
