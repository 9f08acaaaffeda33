"""Where the curves of two losses cross, as far as paired seeds settle it.

    found = crossing_table(rows, gain, shares={0: 1e-4, 4: 0.2})
    crossing_words(found, ["top5", "soft"], seeds=5)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from itr_study.ledger.paired import FEWEST, Arms
from itr_study.metrics.intervals import LEVEL
from itr_study.plots.names import name_of
from itr_study.studies.forgive import REFERENCE
from itr_study.studies.wording import listed, too_few

STEPS = 10_000  # of the line along which two curves are compared


def by_level(rows: pd.DataFrame, loss_a: str, loss_b: str, knob: str, levels: Sequence[float],
             metric: str) -> np.ndarray:
    """(L, n) differences loss_a - loss_b of a metric: L levels of a knob, n seeds that all have.

    Args:    rows: as `train_arms` gives them; knob: "vagueness" or "noise".
    Raises:  ValueError where an arm is missing, or the levels share no seed.
    """
    arms = Arms(rows)
    parts = [arms.part(*(f"{loss}, {knob}={level:g}" for loss in (loss_a, loss_b)), metric)
             for level in levels]
    of_level = [dict(zip(part.seeds, part.differences, strict=True)) for part in parts]
    seeds = sorted(set.intersection(*map(set, of_level)))
    if not seeds:
        raise ValueError(f"no seed of {loss_a!r} and {loss_b!r} was run at all of the levels of "
                         f"{knob}: {', '.join(f'{level:g}' for level in levels)}")
    return np.array([[values[seed] for seed in seeds] for values in of_level])


class Crossing(NamedTuple):
    """Where the mean difference passes zero; at `low` its interval still lies wholly on one side of
    zero, at `high` wholly on the other."""

    at: float
    low: float
    high: float
    rising: bool  # from below zero to above it


def crossings(x: Sequence[float], differences: np.ndarray, level: float = LEVEL) -> list[Crossing]:
    """Where two curves cross, as far as paired seeds settle it.

    Between two levels each seed's difference is taken to change on a straight line. Along it, the
    Student interval of the mean difference is below zero, above it, or holds it; a crossing is
    settled where it holds zero between a stretch below and one above. Those places are Fieller's
    interval for the root of a line: where the true difference is zero, 95 % of such intervals hold
    zero. One that no level settles on both sides is no crossing: the list is empty, as it is with
    fewer than five seeds, which settle nothing in the ledger either.

    Args:    x: (L,) of the levels, rising, on the scale on which they are drawn (give the logarithm
             for a logarithmic axis); differences: (L, n) of n paired seeds.
    Raises:  ValueError for levels that do not rise, or another number of them.
    Source:  Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16, 1954.
    Example: five seeds, from about -3 to about +1: zero at three quarters of the way
        >>> found = crossings([0, 1], np.array([[-3.1, -2.9, -3, -3, -3], [0.9, 1.1, 1, 1, 1]]))
        >>> [(round(c.at, 2), round(c.low, 2), round(c.high, 2), c.rising) for c in found]
        [(0.75, 0.73, 0.77, True)]
    """
    from scipy import stats

    x, differences = np.asarray(x, float), np.asarray(differences, float)
    if len(x) != len(differences) or (np.diff(x) <= 0).any():
        raise ValueError(f"levels must rise, and have a row of differences each; got {x.tolist()} "
                         f"and {len(differences)} rows")
    n = differences.shape[1]
    if n < FEWEST:
        return []
    along = np.union1d(np.linspace(x[0], x[-1], STEPS + 1), x)
    lines = np.array([np.interp(along, x, seed) for seed in differences.T])  # (n, steps)
    mean = lines.mean(axis=0)
    reach = stats.t.ppf((1 + level) / 2, n - 1) * lines.std(axis=0, ddof=1) / np.sqrt(n)
    side = np.sign(mean) * (abs(mean) > reach)
    settled = np.flatnonzero(side)
    turns = np.flatnonzero(np.diff(side[settled]))
    return [_crossing(along, mean, *settled[turn:turn + 2]) for turn in turns]


def _crossing(along: np.ndarray, mean: np.ndarray, first: int, last: int) -> Crossing:
    """The crossing between two settled places; of several zeros of the mean there, the middle."""
    part, inside = mean[first:last + 1], along[first:last + 1]
    zeros = np.flatnonzero(np.sign(part[:-1]) != np.sign(part[1:]))
    roots = [inside[k] - part[k] * (inside[k + 1] - inside[k]) / (part[k + 1] - part[k])
             for k in zeros]
    return Crossing(float(np.median(roots)), float(inside[0]), float(inside[-1]),
                    bool(part[-1] > 0))


def crossing_table(rows: pd.DataFrame, gain: pd.DataFrame, shares: Mapping[int, float]
                   ) -> pd.DataFrame:
    """Every settled crossing of a loss and the hardest negative, as the share of false negatives
    grows; between two levels curves are taken to change with its logarithm. A level at which runs
    of either have collapsed is left out.

    Args:    rows: of `forgive.scene_arms`; gain: of them, as `forgive.gain_table` gives it;
             shares: level of vagueness -> share, rising.
    Returns: panel, metric, loss, at, low, high (shares), rising.
    """
    lines = []
    for (panel, metric, loss), part in gain.groupby(["panel", "metric", "loss"], sort=False):
        sound = set(part.loc[part["verdict"] != "collapsed", "setting"])
        levels = [level for level in shares if f"vagueness={level}" in sound]
        if len(levels) > 1:
            differences = by_level(rows, loss, REFERENCE, "vagueness", levels, metric)
            lines += [(panel, metric, loss, *np.exp([found.at, found.low, found.high]),
                       found.rising) for found in crossings(
                           np.log([shares[level] for level in levels]), differences)]
    return pd.DataFrame(lines, columns=["panel", "metric", "loss", *Crossing._fields])


def crossing_words(found: pd.DataFrame, losses: Sequence[str], seeds: int) -> str:
    """The crossings of one metric as a sentence, shares in percent.

    Example:
        >>> line = {"loss": "top5", "at": 0.008, "low": 0.0052, "high": 0.0131, "rising": True}
        >>> crossing_words(pd.DataFrame([line]), ["top5", "soft", "sum"], seeds=5)
        'rise above it: top-5 at 0.8 % [0.52, 1.3]; no crossing is settled for soft and sum'
        >>> crossing_words(pd.DataFrame([line]), ["top5"], seeds=3)
        '3 seeds settle nothing (5 are needed)'
    """
    if seeds < FEWEST:
        return too_few(seeds)
    words = []
    for way, rising in (("rise above", True), ("fall below", False)):
        named = [f"{name_of(line.loss)} at {100 * line.at:.2g} % "
                 f"[{100 * line.low:.2g}, {100 * line.high:.2g}]"
                 for line in found[found["rising"] == rising].sort_values("at").itertuples()]
        words += [f"{way} it: {', '.join(named)}"] * bool(named)
    rest = [name_of(loss) for loss in losses if loss not in set(found["loss"])]
    unsettled = f"no crossing is settled for {listed(rest, len(losses))}" if rest else ""
    return "; ".join(filter(None, [*words, unsettled]))
