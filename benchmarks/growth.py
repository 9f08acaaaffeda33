"""How the time of re-ranking grows from a matrix of 1,000 x 5,000 scores to one of 5,000 x 25,000.

    python benchmarks/growth.py [--save] [--rounds 8]

FR, RR and MR and plain ranks take turns, on both sizes in each round. Of a re-ranker, both
directions and the ranks after it, less plain ranks: 100 ln(CPU seconds on the larger matrix / on
the smaller one). The difference of two re-rankers is how the factor between their times grows. The
ledger pairs rounds as it pairs seeds; --save keeps them in evidence/common/growth.csv.
"""

import argparse
import statistics
import time

from rerank import RERANKERS, test_set  # isort: skip  # first: it sets one thread

import numpy as np
import pandas as pd

from itr_study.files.atomic import write_atomic
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.studies.timing import GROWTH, times_file
from itr_study.metrics import ranks

SIZES = {(1000, 5000): 5, (5000, 25000): 1}  # images and texts: turns in a round


def in_turns(sizes: dict[tuple[int, int], int], rounds: int) -> pd.DataFrame:
    """Growth of every re-ranker in every round: arm, seed (the round), rerank_cpu_growth,
    dataset, model. Sizes: two, the smaller first."""
    sets = {size: test_set(*size) for size in sizes}
    ways = {"plain": lambda given: given, **RERANKERS}
    taken = []
    for number in range(-1, rounds):  # the first warms up
        first = number % len(ways)
        order = [*ways][first:] + [*ways][:first]
        middle = {}
        for size, turns in sizes.items():
            scores, image_of_text = sets[size]
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for name in order * turns:
                start = time.process_time()
                ranks(ways[name](scores), image_of_text)
                seconds[name].append(time.process_time() - start)
            middle[size] = {name: statistics.median(each) for name, each in seconds.items()}
        if number >= 0:
            small, large = ({name: of_size[name] - of_size["plain"] for name in RERANKERS}
                            for of_size in middle.values())
            taken += [(name, number, 100 * np.log(large[name] / small[name]))
                      for name in RERANKERS]
    (images, texts), (more, most) = sizes
    return pd.DataFrame(taken, columns=["arm", "seed", GROWTH]).assign(
        dataset="random scores", model=f"{images:,} images and {texts:,} texts, then {more:,} and "
                                       f"{most:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true", help="keep the rounds")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    if given.rounds < FEWEST:
        parser.error(f"--rounds must be at least {FEWEST}, got {given.rounds}")
    table = in_turns(SIZES, given.rounds)
    print(table.groupby("arm", sort=False)[GROWTH].describe().round(1).to_string())
    if given.save:
        write_atomic(times_file("growth"), table.round(3).to_csv(index=False).encode())


if __name__ == "__main__":
    main()
