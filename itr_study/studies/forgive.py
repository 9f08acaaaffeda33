"""When to forgive: the arms of notebook 13, and where the curves of two losses cross.

Labels: "<loss>, vagueness=<level>", "<loss>, noise=<share>" and "<loss>, without <what>", where a
data set has such an option. The losses are those of FORGIVING.

    x = [pairs.share for pairs in false_negatives(parameters).values()]
    crossings(x, by_level(rows, "hardest", "top5", "vagueness", parameters.levels, "test_rsum"))
"""

import inspect
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.data import DATASETS
from itr_study.data.false_negatives import Pairs, expected_pairs
from itr_study.ledger.paired import FEWEST, Arms
from itr_study.metrics.intervals import LEVEL
from itr_study.runs.data import dataset_of
from itr_study.studies.arms import ArmRun, base_config, in_one_model

# From what takes one negative to what looks at all of them; the last also orders the rest.
FORGIVING = {"hardest": ("hardest",), "top5": ("top5",), "soft": ("soft",), "sum": ("sum",),
             "info_nce": ("info_nce",), "hardest+listwise": ("hardest", "listwise")}
STEPS = 10_000  # of the line along which two curves are compared


def vagueness_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss on captions from precise to vague."""
    return _arms(dataset, parameters, "vagueness", {
        f"vagueness={level}": level for level in parameters.levels})


def noise_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss with a share of the training captions at wrong images; 0 is the data as it is."""
    return _arms(dataset, parameters, "caption_noise", {
        f"noise={share:g}": share for share in parameters.noises})


def near_duplicate_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss on the data without its near-duplicates, and without as many other images."""
    return _arms(dataset, parameters, "leave_out", {
        f"without {what}": what for what in parameters.left_out})


def _arms(dataset: str, parameters: SimpleNamespace, option: str,
          values: Mapping[str, Any]) -> list[ArmRun]:
    """Every loss in the sweeps' model with each value of an option of the data, by what the label
    says of it; none where the data set has no such option."""
    if option not in inspect.signature(DATASETS[dataset].load).parameters:
        return []
    return [arm for words, value in values.items() for arm in in_one_model(
        dataset, _with_option(parameters, option, value), parameters.seeds,
        {f"{loss}, {words}": terms for loss, terms in FORGIVING.items()})]


def _with_option(parameters: SimpleNamespace, option: str, value: Any) -> SimpleNamespace:
    return SimpleNamespace(**vars(parameters) | {
        "data_options": parameters.data_options | {option: value}})


def false_negatives(parameters: SimpleNamespace) -> dict[int, Pairs]:
    """Level of vagueness -> what a training batch of the sweeps' model holds on average."""
    found = {}
    for level in parameters.levels:
        config = base_config("scenes", "two_branch", _with_option(parameters, "vagueness", level))
        dataset = dataset_of(config)
        train = dataset.splits["train"]
        found[level] = expected_pairs(dataset.relevance(train), train.image_of_text,
                                      config.settings.batch_size)
    return found


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
