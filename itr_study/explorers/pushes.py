"""What a loss does to one query's list: its value, and minus its gradient at every score."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from itr_study.explorers.heard import number_of, quoted
from itr_study.losses import LOSSES
from itr_study.losses.kendall import KendallLoss, counts
from itr_study.losses.kendall_window import KendallWindowLoss, hardest

UNFELT = 0.01  # of the largest gradient of the list: below it a text counts as left alone


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
