"""Push and pull: the scores of one query's list on a line, and how each loss would change them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from itr_study.checks import MATCH, check_choice, check_count, check_number
from itr_study.digits import number
from itr_study.explorers.explorer import Control, Explorer, button, choice, slider
from itr_study.explorers.messages import quote, read_number, read_parts
from itr_study.losses import LOSSES
from itr_study.losses.kendall import KendallLoss, counts
from itr_study.losses.kendall_window import KendallWindowLoss, hardest
from itr_study.metrics.kendall import kendall_rows
from itr_study.metrics.ndcg import ndcg_rows
from itr_study.plots.retrieval import push_pull

UNFELT = 0.01  # of the largest gradient of the list: below it a text counts as left alone
STEP = 0.03  # how far one step moves the text that is moved most
STEPS = 200  # of "until the matches are first", at most
SHOWN = ("triplet_hardest", "topk", "smooth_ndcg", "kendall_window")  # of the still picture
ZERO = "Nothing moves: the gradient is 0."
BOUND = "Nothing moves: all scores that are pushed are at −1 or 1 already."


class Item(NamedTuple):
    """A text of the list: its relevance to the query in [0, 1], 1 for a match, and its score."""

    text: str
    relevance: float
    score: float

    @classmethod
    def read(cls, given: Sequence[Any]) -> "Item":
        """Convert a text, its relevance and its score; ValueError if they are out of range."""
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 3:
            raise ValueError("an item is a text, its relevance and its score, such as "
                             f"('a dog runs', 1.0, 0.3); got {quote(given)}")
        text, *numbers = given
        for name, least, at in (("relevance", 0, 0), ("score", -1, 1)):
            numbers[at] = read_number(f"{name} of {quote(text)}", numbers[at])
            check_number(f"{name} of {quote(text)}", numbers[at], least=least, most=1)
        return cls(str(text), *numbers)


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

# What sliders set of each loss: argument -> label, least, most, step.
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
    "ladder": {}, "semantic_margin": {"temperature": ("temperature", 0.5, 10, 0.5)},
    "soft_labels": {"temperature": ("temperature", 0.05, 1.0, 0.05)},
    "recall_at_k": {"temperature": ("temperature τ", 0.005, 0.3, 0.005),
                    "rank_temperature": ("ranks τₖ", 0.5, 5.0, 0.5)}}


class Push(NamedTuple):
    """A loss of a list, minus its gradient (n,), and why it cannot be computed, mostly ""."""

    value: float
    up: np.ndarray
    problem: str = ""

    @property
    def felt(self) -> np.ndarray:
        """Which texts (n,) it moves at all."""
        size = np.abs(self.up)
        return (size > UNFELT * size.max()) if size.size and size.max() > 0 else size > 0


def name_loss(loss: str) -> str:
    """Return the name of a loss as shown.

    Example:
        >>> name_loss("topk"), name_loss("triplet_hardest")
        ('Top-k', 'Hardest')
    """
    label = LOSSES[loss].display_name
    return label[0].upper() + label[1:]


def count_comparisons(loss: str, arguments: Mapping[str, float], scores: np.ndarray,
                      relevance: np.ndarray) -> dict[str, str]:
    """Count the pairs or windows of a list that a Kendall loss compares, and the wrong ones."""
    made = LOSSES[loss](**arguments)
    labels = 2 * torch.tensor(relevance)[None] - 1
    if isinstance(made, KendallLoss) and len(scores) > 1:
        pairs = torch.tensor(np.stack(np.triu_indices(len(scores), 1), axis=1))  # (P, 2) places
        gradient, compared = counts(torch.tensor(scores)[pairs], labels[0][pairs], made.relaxation)
        wrong = int((gradient != 0).any(dim=1).sum())
        return {"pairs compared": f"{int(compared)} of {len(pairs)}",
                "pairs in the wrong order": str(wrong)}
    if isinstance(made, KendallWindowLoss):
        above, below = made.windows(labels, labels >= 1)
        every = np.arange(1, len(made.edges) + 1)[:, None]
        parted = int(((above[0].numpy() >= every).any(axis=1)
                      & (below[0].numpy() < every).any(axis=1)).sum())
        wrong = int((hardest(torch.tensor(scores)[None], above, below, len(every)) > 0).sum())
        return {"windows with texts above and below": f"{parted} of {len(every)}",
                "windows in the wrong order": str(wrong)}
    return {}


class PushPull(Explorer):
    """One query, its texts, their scores; and each loss with the arrows of its gradient.

    Args:
        items: at least one match (relevance 1) and one other; scores in [-1, 1].
        loss: a name of LOSSES.
    """

    drawing, title = "push_pull", "Push and pull"

    def __init__(self, items: Sequence[Item] = DOG, loss: str = "triplet_hardest") -> None:
        check_choice("loss", loss, LOSSES)
        if isinstance(items, str) or not isinstance(items, Sequence):
            raise ValueError("items must be a list of (text, relevance, score), got "
                             f"{quote(items)}")
        self.items = tuple(Item.read(item) for item in items)
        matches = sum(item.relevance >= MATCH for item in self.items)
        if not 0 < matches < len(self.items):
            raise ValueError("a list needs at least one match (relevance 1) and one other text; "
                             f"got {matches} matches among {len(self.items)} texts")
        self.relevance = np.array([item.relevance for item in self.items], float)
        self.events = {"drag": self.drag}
        self.loss, self.steps = loss, 0
        self.arguments: dict[str, dict[str, float]] = {name: {} for name in LOSSES}
        self.start()

    def start(self, _: Any = None) -> None:
        """Put all scores back."""
        self.scores, self.steps = np.array([item.score for item in self.items], float), 0

    def choose(self, loss: str) -> None:
        """Draw the arrows of another loss."""
        check_choice("loss", loss, LOSSES)
        self.loss = loss

    def drag(self, moved: Mapping[str, Any]) -> None:
        """Give one text another score: {"item": its index, "score": in [-1, 1]}."""
        place, score = read_parts("a text that is moved", moved, "item", "score")
        check_count("item", place, least=0, most=len(self.items) - 1)
        check_number("score", read_number("score", score), least=-1, most=1)
        self.scores = self.scores.copy()
        self.scores[place] = score

    def set(self, argument: str, value: float) -> None:
        """Set an argument of the loss, within its slider: beyond, gradients may be NaN."""
        label, least, most, _ = SLIDERS[self.loss][argument]
        check_number(label, value, least=least, most=most)
        value = int(value) if argument == "k" else float(value)
        LOSSES[self.loss](**self.arguments[self.loss] | {argument: value})
        self.arguments[self.loss][argument] = value

    def step(self, _: Any = None) -> bool:
        """Follow the gradient: the text that is moved most by STEP; False if nothing moves."""
        push, before = self.push(self.loss), self.scores
        if push.problem:
            raise ValueError(push.problem)
        size = np.abs(push.up).max()
        if size > 0:
            self.scores = np.clip(self.scores + STEP * push.up / size, -1, 1)
        moved = bool((self.scores != before).any())
        self.steps += moved
        if not moved:
            self.note = BOUND if push.up.any() else ZERO
        return moved

    def run(self, _: Any = None) -> None:
        """Step until all matches are first, nothing moves, or STEPS are made."""
        for _ in range(STEPS):
            if self.matches_first() or not self.step():
                return

    def matches_first(self) -> bool:
        """Return whether every match scores above every other text."""
        match = self.relevance >= MATCH
        return bool(self.scores[match].min() > self.scores[~match].max())

    def push(self, loss: str) -> Push:
        """Compute what a loss does to the list, one image; those on cosines get 2 relevance - 1."""
        scores = torch.tensor(self.scores, requires_grad=True)
        labels = torch.tensor(self.relevance)[None]
        try:
            made = LOSSES[loss](**self.arguments[loss])
            cosine = made.relevance_scale == "cosine"
            value = made(scores[None], 2 * labels - 1 if cosine else labels)
            value.backward()
        except ValueError as error:
            return Push(0.0, np.zeros(len(scores)), f"{name_loss(loss)}: {error}")
        return Push(value.item(), -scores.grad.numpy())

    def table(self) -> pd.DataFrame:
        """List for every loss and text: value, up (minus the gradient), felt (is it moved)."""
        now = pd.DataFrame(self.items).assign(score=self.scores)
        tables = []
        for loss in LOSSES:
            push = self.push(loss)
            tables.append(now.assign(value=push.value, up=push.up, felt=push.felt))
            tables[-1].insert(0, "loss", name_loss(loss))
        return pd.concat(tables, ignore_index=True)

    @property
    def selected(self) -> list[Item]:
        """The list as it is now, best first."""
        return [self.items[place]._replace(score=float(self.scores[place]))
                for place in np.argsort(-self.scores, kind="stable")]

    def controls(self) -> list[Control]:
        """List what can be set."""
        made = LOSSES[self.loss](**self.arguments[self.loss])
        return [choice("loss", "Loss", self.choose, self.loss,
                       {name: name_loss(name) for name in LOSSES}),
                *(slider(f"set-{name}", label, partial(self.set, name), vars(made)[name], *ends)
                  for name, (label, *ends) in SLIDERS[self.loss].items()),
                button("step", "Step", self.step),
                button("run", "Step until the matches are first", self.run),
                button("start", "Start again", self.start)]

    def stage(self) -> dict[str, Any]:
        """Return the list with its arrows, and a line for every loss."""
        pushes = {name: self.push(name) for name in LOSSES}
        push = pushes[self.loss]
        largest = np.abs(push.up).max() or 1.0
        ranks = np.argsort(np.argsort(-self.scores, kind="stable")) + 1
        return {"loss": name_loss(self.loss),
                "items": [{"text": item.text, "relevance": item.relevance,
                           "match": item.relevance >= MATCH, "score": round(float(score), 4),
                           "up": float(up / largest), "felt": bool(felt), "rank": int(rank)}
                          for item, score, up, felt, rank in zip(
                              self.items, self.scores, push.up, push.felt, ranks, strict=True)],
                "losses": [{"name": name_loss(name), "chosen": name == self.loss,
                            "problem": one.problem,
                            "value": "" if one.problem else number(one.value, 3),
                            "signs": np.where(one.felt, np.sign(one.up), 0).astype(int).tolist()}
                           for name, one in pushes.items()]}

    def numbers(self) -> dict[str, str]:
        """Return what the loss does to the list, and how good the list is."""
        push, told = self.push(self.loss), {"loss": name_loss(self.loss)}
        if push.problem:
            told["value"] = push.problem
        else:
            up, down = ((push.felt & (sign * push.up > 0)).sum() for sign in (1, -1))
            told |= {"value": number(push.value, 3),
                     "pulled up": f"{up} of {len(self.items)}",
                     "pushed down": f"{down} of {len(self.items)}"}
            told |= count_comparisons(self.loss, self.arguments[self.loss], self.scores,
                                      self.relevance)
        scores, relevance = (np.float32(x)[None] for x in (self.scores, self.relevance))
        return told | {"NDCG": number(float(ndcg_rows()(scores, relevance)[0]), 2),
                       "Kendall's τ": number(float(kendall_rows()(scores, relevance)[0]), 2),
                       "matches first": "yes" if self.matches_first() else "no",
                       "steps": str(self.steps)}

    def picture(self) -> Figure:
        """Draw the list under four losses that differ, a panel each."""
        shown = list(dict.fromkeys([self.loss, *SHOWN]))[:4]
        pushes = {name_loss(loss): self.push(loss) for loss in shown}
        return push_pull([item.text for item in self.items], self.scores, self.relevance,
                         {name: push.up for name, push in pushes.items()},
                         {name: push.felt for name, push in pushes.items()},
                         "One list of texts, and where each loss pushes it")
