"""Any two models compared by their runs, by the rule of the ledger.

Runs are paired by seed, as claims are (`paired`): a difference is settled where the 95 % Student-t
interval of its mean, over five pairs or more, lies on one side of zero. Of several rivals the share
of false discoveries is held at 5 % for each metric (Benjamini and Hochberg, 1995). Queries are
paired, too: a second interval says what other images would change, and decides nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from itr_study.digits import counted, number, signed, with_interval
from itr_study.evaluation.table import bootstrap_difference
from itr_study.lab.ledger.paired import FEWEST, MOST, Part, sign
from itr_study.metrics import Ranks
from itr_study.metrics.intervals import LEVEL

POWER = 0.8  # share of tries that would show the smallest detectable difference
FALSE = 1 - LEVEL  # discoveries that may be false, of several rivals
LOWER = ("medr", "meanr", "hubness")  # endings of metrics of which less is better
OUTCOMES = {"higher": "better", "lower": "worse", "undecided": "not settled"}


@dataclass(frozen=True)
class Runs:
    """The runs of one model: tables of metrics by seed, in percent, and ranks where they are known.

    ranks: by seed; owner: (T,) the image of each text, which ranks need; seen: what the model has
    seen of the test set, in words, "" if nothing is known.
    """

    name: str
    tables: Mapping[str, Mapping[str, float]]
    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    owner: np.ndarray | None = None
    seen: str = ""

    def mean(self, metric: str) -> float:
        """Average a metric over the runs."""
        return float(np.mean([table[metric] for table in self.tables.values()]))


def paired_seeds(a: Runs, b: Runs) -> list[str]:
    """List the seeds of two models, the same for both; of one run each, whatever they are called.

    Raises: ValueError: they have other seeds.
    """
    if set(a.tables) != set(b.tables) and (len(a.tables), len(b.tables)) != (1, 1):
        has = ", ".join(f"{side.name} has {', '.join(sorted(side.tables))}" for side in (a, b))
        raise ValueError(f"runs are paired by seed, and {has}: leave out what has no partner, or "
                         "name the files alike (seed0, seed1 …; of models that share nothing any "
                         "order will do)")
    return sorted(a.tables)


def differences_of(a: Runs, b: Runs, metric: str) -> Part:
    """Pair two models by seed on a metric."""
    seeds = paired_seeds(a, b)
    others = seeds if len(seeds) > 1 else list(b.tables)
    values = [a.tables[one][metric] - b.tables[two][metric]
              for one, two in zip(seeds, others, strict=True)]
    return Part(a.name, b.name, metric, tuple(range(len(seeds))), np.array(values, float))


def detectable(spread: float, pairs: int) -> float:
    """Compute the smallest true mean that POWER of such comparisons would settle.

    By the noncentral t distribution; NaN below FEWEST pairs, which settle nothing.

    Args: spread: standard deviation of the differences; pairs: how many.
    Example: five pairs that spread by 1 settle a mean of 1.68 in four of five tries
        >>> round(detectable(1.0, 5), 2), round(detectable(2.0, 10), 2)
        (1.68, 1.99)
    """
    from scipy import optimize, stats

    if pairs < FEWEST:
        return float("nan")
    least = stats.t.ppf((1 + LEVEL) / 2, pairs - 1)
    return spread / pairs**0.5 * float(optimize.brentq(
        lambda shift: stats.nct.sf(least, pairs - 1, shift) - POWER, 0, 50))


def compared(a: Runs, rivals: Sequence[Runs], metrics: Sequence[str]) -> pd.DataFrame:
    """Compare a model with each rival by each metric.

    Returns: Frame of rival, metric, a and b (means), n (pairs), difference, low, high (95 %, over
        seeds), q (false discovery rate over the rivals), detectable, needed (pairs that would
        settle it, NaN: unknown), image_low, image_high (95 %, over images), and verdict: better,
        worse, not settled, or undecided with its reason (`paired.sign`).
    Raises: ValueError: seeds that differ.
    """
    from scipy import stats

    records = []
    for b in rivals:
        images = over_images(a, b)
        for metric in metrics:
            part = differences_of(a, b, metric)
            spread = float(part.differences.std(ddof=1) or np.nan) if part.n > 1 else np.nan
            p = min(part.sample(LEVEL, side).p_value() for side in (1, -1))
            low, high = images.get(metric, (np.nan, np.nan))
            records.append({
                "rival": b.name, "metric": metric, "a": a.mean(metric), "b": b.mean(metric),
                "n": part.n, "difference": part.mean, "low": part.interval()[0],
                "high": part.interval()[1], "p": p, "detectable": detectable(spread, part.n),
                "needed": part.pairs_needed(abs(part.mean)) or np.nan, "image_low": low,
                "image_high": high})
    table = pd.DataFrame(records)
    table["q"] = table.groupby("metric")["p"].transform(stats.false_discovery_control)
    table["verdict"] = [verdict_of(row) for row in table.itertuples()]
    return table


def verdict_of(row: object) -> str:
    """Say which way one comparison is settled, if it is; of the lower metrics, less is better."""
    found = sign(row.low, row.high, row.n)
    if row.q > FALSE and found in ("higher", "lower"):
        found = "undecided"
    if row.metric.endswith(LOWER):
        found = {"higher": "lower", "lower": "higher"}.get(found, found)
    return OUTCOMES.get(found, found)


def over_images(a: Runs, b: Runs) -> dict[str, tuple[float, float]]:
    """Compute the intervals of the mean differences over images, where both have all ranks."""
    if a.owner is None or b.owner is None or not (a.ranks and b.ranks):
        return {}
    found = bootstrap_difference(list(a.ranks.values()), list(b.ranks.values()), a.owner)
    return {metric: (interval.low, interval.high) for metric, interval in found.items()}


def headline(metrics: Sequence[str]) -> str:
    """Choose the metric that decides: RSUM, else the main score of a board, else the first."""
    return next((name for wanted in ("rsum", "main_score") for name in metrics
                 if name.endswith(wanted)), metrics[0])


def sentence(a: str, row: object, differing: np.ndarray | None = None) -> str:
    """Answer who is better, in a sentence.

    Args: a: name of the model; row: of `compared`; differing: of pairs of runs that differ in the
        seed alone, by this metric (`seed_differences`).
    """
    about = with_interval(row.difference, row.low, row.high) + f" {row.metric}"
    if row.n < FEWEST:
        share = "" if differing is None or not len(differing) else (
            f"; by the seed alone such runs differ by more than this in "
            f"{100 * (differing > abs(row.difference)).mean():.0f} % of {len(differing):,} pairs "
            "of ours")
        runs = "one run each" if row.n == 1 else f"{row.n} runs each, {FEWEST} are needed"
        return (f"Cannot tell whether {a} is better than {row.rival}: {runs} "
                f"({signed(row.difference)} {row.metric}){share}")
    pairs = f"{about} over {row.n} pairs of runs"
    if row.verdict in ("better", "worse"):
        return f"{a} is {row.verdict} than {row.rival}: {pairs}"
    end = max(abs(row.low), abs(row.high))
    more = row.needed - row.n
    hint = (f"more than {MOST:,} pairs would settle it at this mean" if np.isnan(more) else
            f"{counted(int(more), 'more seed')} would settle it if mean and spread stay so"
            if more > 0 else f"settled alone, but not among several rivals (q = {row.q:.2f})")
    return (f"No difference larger than ±{number(end)} {row.metric} between {a} and {row.rival}: "
            f"{pairs}; {hint}; such runs show ±{number(row.detectable)} in four of five tries")


def seed_differences(rows: pd.DataFrame, metric: str) -> np.ndarray:
    """List by how much runs differ that differ in their seed alone, over all pairs of them.

    Args:
        rows: published rows of a data set; those of one config, device and arithmetic count where
            there are three seeds or more.
        metric: such as "test_rsum".
    Returns: (P,) >= 0; empty for a metric that rows do not have.
    """
    found = []
    for _, values in settings_of(rows, metric):
        first, second = np.triu_indices(len(values), 1)
        found.append(np.abs(values[first] - values[second]))
    return np.concatenate(found) if found else np.zeros(0)


def settings_of(rows: pd.DataFrame, metric: str) -> list[tuple[str, np.ndarray]]:
    """List each setting with three seeds or more, and the values of its runs."""
    if metric not in rows:
        return []
    done = rows[(rows["status"] == "done") & rows[metric].notna()]
    key = done["config"].map(without_seed) + done["device"].fillna("") + done["arithmetic"].fillna(
        "")
    return [(name, part.to_numpy(float)) for name, part in done[metric].groupby(key)
            if len(part) >= 3]


def without_seed(config: str) -> str:
    """Write a config of a row without its seed."""
    return json.dumps({k: v for k, v in json.loads(config).items() if k != "seed"}, sort_keys=True)
