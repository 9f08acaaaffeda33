"""Collapse: a training whose scores end drawn together, though its loss wants them apart.

The hardest negative may pull so hard that a model gives every pair nearly the same score; a hinge
is at its margin then and its gradient leads nowhere. The results of such a run tell how far it got
before, or how much of it escaped, and nothing about its loss.

    equal = equal_scores(objective, pairs=128)      the loss, were all scores of a batch equal
    collapse(history.table(), equal)                why a training has collapsed, or ""
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from itr_study.training.objective import Objective

TENTH, HALF = 0.1, 0.5  # of the widest spread
NEAR = 0.05  # of the loss for equal scores
# What the cosines of an untrained model spread by here, at least (0.04 to 0.08): the start of
# histories from before that of the first step was kept.
UNTRAINED = 0.04
REMEDIES = ("try more warm-up epochs of a loss that heeds all negatives (triplet_sum), another "
            "learning rate, or softer negatives (triplet_soft, topk)")


@dataclass(frozen=True)
class EqualScores:
    """What an objective gives if all scores of a batch are equal.

    Attributes:
        weights: of the terms whose value does not depend on graded labels, by names in a history.
        loss: the weighted sum of these.
        flat: whether every term is 0 then, its least: the objective asks for equal scores, as the
            Kendall loss, which has no margin.
    """

    weights: Mapping[str, float]
    loss: float
    flat: bool


def equal_scores(objective: Objective, pairs: int) -> EqualScores:
    """Compute the losses of an objective for a batch of so many pairs, all scored 0.

    Only matches are relevant in this batch. Losses of a user's own that do not declare which labels
    they take are left out, and so are losses that look at more than scores.
    """
    scores, relevance = torch.zeros(pairs, pairs), torch.eye(pairs)
    known = [(name, term.weight, float(loss(scores, relevance)),
              "binary" in (loss.relevance_scale, objective.sources[key].scale))
             for name, term, loss, key in zip(objective.names, objective.terms,
                                              objective.ranking_losses, objective.source_keys,
                                              strict=True)
             if loss.takes == "scores" and loss.relevance_scale is not None and term.weight > 0]
    weights = {name: weight for name, weight, _, exact in known if exact}
    loss = sum(weight * value for _, weight, value, exact in known if exact)
    flat = len(known) == len(objective.terms) and all(value == 0 for _, _, value, _ in known)
    return EqualScores(weights, loss, flat)


def collapse(epochs: pd.DataFrame, equal: EqualScores | None = None) -> str:
    """Return why a training has collapsed, in words; empty if it has not.

    It has if in its last epoch the scores spread by less than a tenth of the widest that they ever
    did; or by less than half of it while the loss is within 5 % of its value for equal scores. The
    widest is that of the first step or of any epoch, warm-up included: by the start alone, a model
    that first spreads its scores and then draws them together would look sound. A loss near that
    value is not enough: on its way down every hinge passes it.

    Args:
        epochs: of `History.table`, with score_std and the terms of the loss, and first_score_std if
            it was kept.
        equal: of the objective; None: the spread alone.
    """
    spread, widest = spreads(epochs)
    if not spread < HALF * widest or (equal is not None and equal.flat):
        return ""
    drawn = f"the scores spread by {spread:.2g}, at their widest by {widest:.2g}"
    if spread < TENTH * widest:
        return f"collapsed: in the last epoch {drawn}; {REMEDIES}"
    if equal is None:
        return ""
    loss = part_of(epochs.iloc[-1].to_dict(), equal)
    if loss is None or abs(loss - equal.loss) > NEAR * equal.loss:
        return ""
    return (f"collapsed: in the last epoch the loss stands at {loss:.3g}, {equal.loss:.3g} being "
            f"its value for equal scores, and {drawn}; {REMEDIES}")


def flattened(epochs: pd.DataFrame, equal: EqualScores | None) -> str:
    """Return that an objective has got the equal scores it asks for, or nothing.

    No collapse: the order of the scores may still be learnt, as with the Kendall loss alone.
    """
    spread, widest = spreads(epochs)
    if equal is None or not equal.flat or not spread < TENTH * widest:
        return ""
    return (f"in the last epoch the scores spread by {spread:.2g}, at their widest by "
            f"{widest:.2g}: equal scores are a minimum of this objective; add a loss with a margin "
            "(triplet_soft)")


def spreads(epochs: pd.DataFrame) -> tuple[float, float]:
    """Return the spread of scores in the last epoch and the widest ever; NaN if unknown."""
    if epochs.empty or "score_std" not in epochs:
        return math.nan, math.nan
    of_epochs, first = epochs["score_std"].astype(float), epochs.get("first_score_std")
    start = UNTRAINED if first is None else first.astype(float).max()
    return of_epochs.iloc[-1], max(of_epochs.max(), start)


def part_of(epoch: Mapping[str, Any], equal: EqualScores) -> float | None:
    """Return the part of an epoch's loss whose value for equal scores is known, if any.

    None in warm-up epochs, too, which have another loss.
    """
    values = [epoch.get(name, math.nan) for name in equal.weights]
    if not values or equal.loss <= 0 or pd.isna(values).any():
        return None
    return sum(weight * value for weight, value in zip(equal.weights.values(), values, strict=True))
