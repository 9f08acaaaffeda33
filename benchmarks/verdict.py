"""How often the rule of `itr-study verdict` is wrong, on null pairs and on known differences.

    python benchmarks/verdict.py [--pairs 10000]

False wins: models that differ in nothing but the seed, five runs against five others of one
published setting, in all 30,240 ways of pairing ten runs. Nothing is drawn, and no run is in two
pairs; as each way has its opposite, as many win as lose. What is left is the chance that these
settings are as they are: its standard error is over settings, and ten draws of a normal
distribution show it beside. Coverage: simulated runs of two models whose true difference is known,
and how often the 95 % interval holds it.
"""

import argparse
from itertools import product

import numpy as np
from scipy import stats

import itr_study as itr
from itr_study.lab.ledger.paired import Sample
from itr_study.lab.ledger.rivals import LEAST, seed_differences, settings_of
from itr_study.metrics.intervals import LEVEL, student_interval

METRICS = ("test_rsum", "test_i2t_r1", "test_t2i_r1")
DATA = ("flickr8k", "scenes")
LAWS = {"normal": stats.norm(), "skewed": stats.expon(), "heavy-tailed": stats.t(3)}
RUNS = 10  # of a setting: five against five
ONE_RUN = 0.5  # points of mean recall: the rule that calls a single run a win


def pairings(places: list[int]) -> list[list[tuple[int, int]]]:
    """List all ways of dividing places into pairs: 945 of ten."""
    if not places:
        return [[]]
    first, *rest = places
    return [[(first, other), *others] for other in rest
            for others in pairings([place for place in rest if place != other])]


PAIRS, SIGNS = np.array(pairings(list(range(RUNS)))), np.array(list(product((1, -1),
                                                                            repeat=RUNS // 2)))


def false_wins(runs: np.ndarray, least: float = LEAST) -> float:
    """Return the share, in percent, of all ways of pairing ten runs that a verdict calls better.

    least: how far an interval must be above zero.
    """
    differences = (np.subtract(*runs[PAIRS].T).T[:, None] * SIGNS).reshape(-1, RUNS // 2) - least
    mean, spread = differences.mean(axis=1), differences.std(axis=1, ddof=1)
    half = stats.t.isf((1 - LEVEL) / 2, RUNS // 2 - 1) * spread / (RUNS // 2) ** 0.5
    wins = mean > half
    assert all(Sample(row, LEVEL).above() == won for row, won in zip(
        differences[::997], wins[::997], strict=True))  # the rule itself, which takes longer
    return 100 * float(wins.mean())


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
    rng = np.random.default_rng(0)
    of_normal = np.array([false_wins(rng.standard_normal(RUNS), 0.0) for _ in range(300)])
    print(f"False wins, and as many false losses, of five against five runs of one setting, in "
          f"percent of all pairings:\n  ten draws of a normal distribution {of_normal.mean():.1f}, "
          f"from {of_normal.min():.1f} to {of_normal.max():.1f}, standard deviation "
          f"{of_normal.std():.2f}")
    for metric in METRICS:
        values = [runs for data in DATA for _, runs in settings_of(itr.rows(data), metric)]
        found, above_zero = (np.array([
            false_wins(runs[:RUNS], least) for runs in values if len(runs) >= RUNS])
            for least in (LEAST, 0.0))
        print(f"  {metric:<12} {found.mean():.2f} in {len(found)} settings, standard error if runs "
              f"were normal {of_normal.std() / len(found) ** 0.5:.2f}; if any difference above 0 "
              f"were a win, {above_zero.mean():.2f}")
    print(f"Runs of one setting on {DATA[0]} that are {ONE_RUN} points or more apart:")
    for metric in METRICS:
        scale = 6 if metric == "test_rsum" else 1  # of mean recall
        apart = seed_differences(itr.rows(DATA[0]), metric) / scale
        share = 100 * (apart >= ONE_RUN).mean()
        print(f"  {metric:<12} {share:.0f} of {len(apart):,} pairs in 100")
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
