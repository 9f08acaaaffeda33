"""Push and pull: the scores of one query's list on a line, and what each loss would do to them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from itr_study.checks import MATCH, check_choice, check_number
from itr_study.digits import number
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider
from itr_study.explorers.messages import number_of, parts_of, quoted
from itr_study.losses import LOSSES
from itr_study.losses.kendall import KendallLoss, counts
from itr_study.losses.kendall_window import KendallWindowLoss, hardest
from itr_study.metrics.kendall import kendall_rows
from itr_study.metrics.ndcg import ndcg_rows
from itr_study.plots.push_pull import push_pull

UNFELT = 0.01  # of the largest gradient of the list: below it a text counts as left alone
STEP = 0.03  # how far one step moves the text that is moved most
STEPS = 200  # of "until the matches are first", at most


class Item(NamedTuple):
    """A text of the list: its relevance to the query in [0, 1], 1 for a match, and its score."""

    text: str
    relevance: float
    score: float


def item_of(given: Sequence[Any]) -> Item:
    """An item of a text, its relevance and its score, as plain numbers; else ValueError."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 3:
        raise ValueError("an item is a text, its relevance and its score, such as "
                         f"('a dog runs', 1.0, 0.3); got {quoted(given)}")
    text, relevance, score = given
    return Item(str(text), number_of(f"relevance of {quoted(text)}", relevance),
                number_of(f"score of {quoted(text)}", score))


# Of a photograph of a brown dog that runs over grass; scores and relevance are made up.
DOG = (Item("a brown dog runs across the grass", 1.0, 0.52),
       Item("a dog is running in a green field", 1.0, 0.34),
       Item("a brown puppy plays on a lawn", 0.85, 0.60),
       Item("two dogs chase each other outside", 0.75, 0.47),
       Item("a black dog jumps over a fence", 0.65, 0.43),
       Item("a horse gallops through a meadow", 0.5, 0.28),
       Item("children play football on the grass", 0.35, 0.38),
       Item("a cat sleeps on a sofa", 0.3, 0.17),
       Item("a man rides a bicycle downtown", 0.15, 0.10),
       Item("a red car waits at a light", 0.05, 0.02))

# What of each loss a slider sets: argument -> label, least, most, step.
SLIDERS: dict[str, dict[str, tuple[str, float, float, float]]] = {
    **{name: {"margin": ("margin", 0.0, 0.6, 0.02)} for name in ("triplet_sum", "triplet_hardest")},
    "triplet_soft": {"margin": ("margin", 0.0, 0.6, 0.02), "scale": ("γ", 5, 200, 5)},
    "topk": {"margin": ("margin", 0.0, 0.6, 0.02), "k": ("k", 1, 8, 1)},
    "kth": {"margin": ("margin", 0.0, 0.6, 0.02), "k": ("k", 1, 8, 1)},
    "info_nce": {"temperature": ("temperature", 0.01, 0.5, 0.01)},
    "sigmoid": {"scale": ("scale", 1, 50, 1), "bias": ("bias", -20, 10, 1)},
    "smooth_ndcg": {"temperature": ("temperature τ", 0.005, 0.3, 0.005)},
    "listnet": {"temperature": ("temperature", 0.01, 0.5, 0.01)},
    "approx_ndcg": {"alpha": ("α", 1, 100, 1)},
    "kendall": {"relaxation": ("relaxation", 0.0, 1.0, 0.05)},
    "kendall_window": {"relaxation": ("size α", 0.0, 0.8, 0.05),
                       "stride": ("stride β", 0.05, 0.6, 0.05)},
    "ladder": {}, "semantic_margin": {"temperature": ("temperature", 0.5, 10, 0.5)}}
WHOLE = {"k"}  # arguments that are counts


class Push(NamedTuple):
    """What a loss does to a list: its value, and minus its gradient, (n,), up where positive; or
    the reason why it cannot be taken of this list."""

    value: float
    up: np.ndarray
    problem: str = ""

    @property
    def felt(self) -> np.ndarray:
        """(n,) which texts it moves at all."""
        size = np.abs(self.up)
        return (size > UNFELT * size.max()) if size.size and size.max() > 0 else size > 0


def called(loss: str) -> str:
    """How a reader calls a loss.

    Example:
        >>> called("topk"), called("triplet_hardest")
        ('Top-k', 'Hardest')
    """
    label = LOSSES[loss].display_name
    return label[0].upper() + label[1:]


def push_of(loss: str, arguments: Mapping[str, float], scores: np.ndarray,
            relevance: np.ndarray) -> Push:
    """What a loss does to scores (n,) of texts of relevance (n,) in [0, 1], 1 for a match.

    It is given the one list as a batch of one image. Losses on cosines see 2 relevance - 1.
    """
    given = torch.tensor(scores, requires_grad=True)
    labels = torch.tensor(relevance)[None]
    try:
        made = LOSSES[loss](**arguments)
        value = made(given[None], 2 * labels - 1 if made.relevance_scale == "cosine" else labels)
        value.backward()
    except ValueError as error:
        return Push(0.0, np.zeros(len(scores)), f"{called(loss)}: {error}")
    return Push(value.item(), -given.grad.numpy())


def asked(loss: str, arguments: Mapping[str, float], scores: np.ndarray,
          relevance: np.ndarray) -> str:
    """Which pairs or windows of a list a loss looks at, and how many stand wrong, as a sentence;
    empty for losses that look at neither, and where there is nothing to look at.

    Args:    as `push_of`.
    """
    made = LOSSES[loss](**arguments)
    labels = 2 * torch.tensor(relevance)[None] - 1
    if isinstance(made, KendallLoss) and len(scores) > 1:
        one, other = np.triu_indices(len(scores), 1)
        pairs = torch.tensor(np.stack([one, other], axis=1))  # (P, 2) places
        gradient, heard = counts(torch.tensor(scores)[pairs], labels[0][pairs], made.relaxation)
        wrong = int((gradient != 0).any(dim=1).sum())
        return (f"It asks about {int(heard)} of {len(pairs)} pairs of texts; {wrong} of them stand "
                "the wrong way round.")
    if isinstance(made, KendallWindowLoss):
        above, below = made.windows(labels, labels >= 1)
        every = np.arange(1, len(made.edges) + 1)[:, None]
        parted = int(((above[0].numpy() >= every).any(axis=1)
                      & (below[0].numpy() < every).any(axis=1)).sum())
        wrong = int((hardest(torch.tensor(scores)[None], above, below, len(every)) > 0).sum())
        return (f"{parted} of its {len(every)} windows part the list; in {wrong} of them a text "
                "below scores higher than one above.")
    return ""


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
