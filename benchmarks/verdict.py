"""How often the rule of `itr-study verdict` is wrong, on null pairs and on known differences.

    python benchmarks/verdict.py [--pairs 10000]

False wins: pairs of models that differ in nothing but the seed, drawn from published runs of
settings: five against five runs of one setting; and pairs of residuals of a setting (each run less
the mean of its setting), drawn with replacement. Coverage: simulated runs of two models whose true
difference is known, and how often the 95 % interval holds it.
"""

import argparse

import numpy as np
from scipy import stats

import itr_study as itr
from itr_study.lab.ledger.paired import sign
from itr_study.lab.ledger.rivals import settings_of
from itr_study.metrics.intervals import LEVEL, student_interval

METRICS = ("test_rsum", "test_i2t_r1", "test_t2i_r1")
LAWS = {"normal": stats.norm(), "skewed": stats.expon(), "heavy-tailed": stats.t(3)}
ONE_RUN = 0.5  # points of mean recall: the rule that calls a single run a win


def null_differences(values: list[np.ndarray], tries: int, pairs: int, seed: int = 0) -> np.ndarray:
    """Draw (tries, pairs) differences of runs of one setting, each setting as often as another."""
    rng, found = np.random.default_rng(seed), np.empty((tries, pairs))
    enough = [runs for runs in values if len(runs) >= 2 * pairs]
    for row in found:
        runs = rng.permutation(enough[rng.integers(len(enough))])[:2 * pairs]
        row[:] = runs[:pairs] - runs[pairs:]
    return found


def pooled_differences(values: list[np.ndarray], tries: int, pairs: int,
                       seed: int = 0) -> np.ndarray:
    """Draw (tries, pairs) differences of two runs, of one setting for all pairs of a try."""
    rng, found = np.random.default_rng(seed), np.empty((tries, pairs))
    enough = [runs for runs in values if len(runs) >= pairs]
    for row in found:
        runs = enough[rng.integers(len(enough))]
        residuals = (runs - runs.mean()) * (len(runs) / (len(runs) - 1)) ** 0.5
        row[:] = rng.choice(residuals, pairs) - rng.choice(residuals, pairs)
    return found


def wins(differences: np.ndarray) -> tuple[float, float]:
    """Return the shares of tries, in percent, that are settled above and below zero."""
    found = [sign(*student_interval(row), len(row)) for row in differences]
    return tuple(100 * np.mean([one == side for one in found]) for side in ("higher", "lower"))


def coverage(law: object, pairs: int, tries: int, one_sided: bool = False) -> float:
    """Return how often, in percent, the interval holds a true difference of 1.

    one_sided: only the runs of one model are drawn from the law, those of the other do not vary.
    """
    rng = np.random.default_rng(pairs)
    first, second = (law.rvs((tries, pairs), random_state=rng) for _ in range(2))
    differences = 1 + first - (law.mean() if one_sided else second)
    low, high = np.array([student_interval(row) for row in differences]).T
    return 100 * float(((low <= 1) & (1 <= high)).mean())


def main(tries: int) -> None:
    rows = itr.rows("flickr8k")
    print(f"False wins at {LEVEL:.0%}, each side, in percent of {tries:,} null pairs of models:")
    for metric in METRICS:
        values = [runs for _, runs in settings_of(rows, metric)]
        disjoint = wins(null_differences(values, tries, 5))
        shares = [wins(pooled_differences(values, tries, pairs)) for pairs in (5, 10)]
        scale = 6 if metric == "test_rsum" else 1  # of mean recall
        apart = np.concatenate([np.subtract.outer(runs, runs)[np.triu_indices(len(runs), 1)]
                                for runs in values]) / scale
        moved = 100 * float((np.abs(apart) >= ONE_RUN).mean())
        print(f"  {metric:<12} 5 against 5 runs of one setting {disjoint[0]:.1f} and "
              f"{disjoint[1]:.1f}; drawn from all settings, 5 pairs {shares[0][0]:.1f} and "
              f"{shares[0][1]:.1f}, 10 pairs {shares[1][0]:.1f} and {shares[1][1]:.1f}; one run "
              f"each, {ONE_RUN} points or more apart: {moved:.0f} of {len(apart):,} pairs in 100")
    print(f"Coverage of the interval, in percent of {tries:,} simulated pairs of models:")
    for name, law in LAWS.items():
        print(f"  {name:<12} 5 seeds {coverage(law, 5, tries):.1f}, 10 seeds "
              f"{coverage(law, 10, tries):.1f}; if only one model varies so: 5 seeds "
              f"{coverage(law, 5, tries, True):.1f}, 10 seeds {coverage(law, 10, tries, True):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    main(parser.parse_args().pairs)
