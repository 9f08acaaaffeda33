"""Any two models compared by their runs, by the rule of the ledger.

That one is better than a rival is a claim of kind `difference` (`verdict.case_of`), to be settled
by five pairs of runs or more; if it is in points, by more than LEAST. Of several rivals the share
of false discoveries is held at 5 % for each metric (`verdict.q_values`). Queries are paired, too: a
second interval says what other images would change, and decides nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from itr_study.digits import counted, number, signed, with_interval
from itr_study.evaluation.table import Interval, bootstrap_difference
from itr_study.lab.ledger.paired import FEWEST, MOST, Part
from itr_study.lab.ledger.verdict import (
    SMALLEST,
    at_looks,
    case_of,
    decide,
    in_margins,
    p_value,
    q_values,
    unit_in,
)
from itr_study.metrics import Ranks
from itr_study.metrics.intervals import LEVEL

LEAST = 0.1  # points: the last digit that tables print; what is less is no win
POWER = 0.8  # share of tries that would show the smallest detectable difference
FALSE = 1 - LEVEL  # discoveries that may be false, of several rivals
LOWER = ("medr", "meanr", "hubness")  # endings of metrics of which less is better
NO_EFFECT, OPEN, NONE = "no effect", "not settled", Interval(np.nan, np.nan, np.nan)
OUTCOMES = {"reproduced": "better", "contradicted": "worse", NO_EFFECT: NO_EFFECT}


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


def differences_of(a: Runs, b: Runs, metric: str) -> Part:
    """Pair two models by seed on a metric; one run each, whatever their seeds are called.

    Raises: ValueError: they have other seeds.
    """
    if set(a.tables) != set(b.tables) and (len(a.tables), len(b.tables)) != (1, 1):
        has = ", ".join(f"{side.name} has {', '.join(sorted(side.tables))}" for side in (a, b))
        raise ValueError(f"runs are paired by seed, and {has}: leave out what has no partner, or "
                         "name the files alike (seed0, seed1 …; of models that share nothing any "
                         "order will do)")
    return Part.of(a.name, b.name, metric, *(pd.Series(
        [side.tables[seed][metric] for seed in sorted(side.tables)], sorted(a.tables), float)
        for side in (a, b)))


def detectable(spread: float, pairs: int, level: float = LEVEL) -> float:
    """Compute the smallest true mean that POWER of such comparisons would settle.

    By the noncentral t distribution; NaN below FEWEST pairs, which settle nothing.

    Args: spread: standard deviation of the differences; pairs: how many; level: of confidence.
    Example: five pairs that spread by 1 settle a mean of 1.68 in four of five tries
        >>> round(detectable(1.0, 5), 2), round(detectable(2.0, 10), 2)
        (1.68, 1.99)
    """
    from scipy import optimize, stats

    if pairs < FEWEST:
        return float("nan")
    least = stats.t.ppf((1 + level) / 2, pairs - 1)
    return spread / pairs**0.5 * float(optimize.brentq(
        lambda shift: stats.nct.sf(least, pairs - 1, shift) - POWER, 0, 50))


def compared(a: Runs, rivals: Sequence[Runs], metrics: Sequence[str],
             looks: int = 1) -> pd.DataFrame:
    """Compare a model with each rival by each metric, after so many looks (`verdict.at_looks`).

    Returns: Frame of rival, metric, a and b (means), n (pairs), difference, low, high (over seeds,
        at the level, 0.95 or more), p and q (of a difference that is a win or a loss; the rivals
        are a family), margin (what is less has no effect), detectable, needed (pairs that would
        settle it), image_low, image_high (95 %, over images), NaN where unknown, and verdict:
        better, worse, no effect, not settled, or undecided for want of pairs.
    Raises: ValueError: seeds that differ.
    """
    records = []
    for b in rivals:
        images = over_images(a, b)
        for metric in metrics:
            part = differences_of(a, b, metric)
            spread = float(part.differences.std(ddof=1) or np.nan) if part.n > 1 else np.nan
            least = 0.0 if metric.endswith(LOWER) else LEAST
            case = at_looks(case_of([part], -1 if metric.endswith(LOWER) else 1, least), looks)
            level, outcome, ahead = case.support[0].level, decide(case), abs(part.mean) - least
            low, high = part.interval(level)
            records.append({
                "rival": b.name, "metric": metric, "a": a.mean(metric), "b": b.mean(metric),
                "n": part.n, "difference": part.mean, "low": low, "high": high, "level": level,
                "p": p_value(case._replace(small=[]), "undecided"),
                "margin": SMALLEST.get(unit_in(metric), np.nan),
                "detectable": least + detectable(spread, part.n, level),
                "needed": (ahead > 0 and part.pairs_needed(ahead, level)) or np.nan,
                "image_low": images.get(metric, NONE).low,
                "image_high": images.get(metric, NONE).high,
                "verdict": OUTCOMES.get(outcome, OPEN)})
    table = pd.DataFrame(records).assign(q=lambda found: q_values(found, "metric"))
    few, false = table["n"] < FEWEST, (table["q"] > FALSE) & (table["verdict"] != NO_EFFECT)
    table["verdict"] = table["verdict"].mask(false, OPEN).mask(
        few, "undecided (" + table["n"].map(lambda n: counted(n, "seed")) + ")")
    return table


def over_images(a: Runs, b: Runs) -> dict[str, Interval]:
    """Compute the intervals of the mean differences over images, where both have all ranks."""
    if a.owner is None or b.owner is None or not (a.ranks and b.ranks):
        return {}
    return bootstrap_difference(list(a.ranks.values()), list(b.ranks.values()), a.owner)


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
    hint = (f"less than {in_margins([row.metric])} counts as none" if row.verdict == NO_EFFECT else
            f"more than {MOST:,} pairs or a larger mean would settle it" if np.isnan(more) else
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
    seedless = done["config"].map(
        lambda text: json.dumps(json.loads(text) | {"seed": None}, sort_keys=True))
    key = seedless + done["device"].fillna("") + done["arithmetic"].fillna("")
    return [(name, part.to_numpy(float)) for name, part in done[metric].groupby(key)
            if len(part) >= 3]
