"""Time and memory of re-ranking and counting ranks, against straightforward versions.

    python benchmarks/rerank.py [--images 5000 --texts 25000 --repeats 3]
    python benchmarks/rerank.py --save [--rounds 12]

FR against Eqs. 14-15 as they are printed, in numpy, then plain ranks of both matrices; RR and MR,
one direction at a time, against loops as published code has them, on so much of the matrix as these
go through in a minute. Prints the ratio of CPU seconds, one thread, and the peak memory beyond the
scores, each in a fresh process; last the seconds of the grid of Fig. 7, two threads.

With --save instead: FR, RR and MR take turns on a test split of 1,000 images and 5,000 texts, as
Flickr8k and Flickr30k have them. A round is the median of a few turns, less that of plain ranks;
the ledger pairs rounds as it pairs seeds, so they are kept in evidence/common/rerank.csv.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before numpy is imported

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from _memory import peak_mb  # noqa: E402

from itr_study.files.atomic import write_atomic  # noqa: E402
from itr_study.lab.ledger.paired import FEWEST  # noqa: E402
from itr_study.lab.studies.timing import RERANKING, times_file  # noqa: E402
from itr_study.metrics import Scores, ranks  # noqa: E402
from itr_study.rerank import RERANKERS, fast_grid  # noqa: E402

SCALES = (25, 25, 20, 20)
GRID = [1, *range(5, 50, 5), *range(50, 500, 50), *range(500, 1501, 100)]  # of Fig. 7: 30 values
ENOUGH = 4  # seconds of CPU after which nothing is repeated
Version = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]


def printed_fast(scores: np.ndarray, image_of_text: np.ndarray) -> list[np.ndarray]:
    """Eqs. 14 and 15 as they are typed, then the ranks of both matrices."""
    gamma1, gamma2, lambda1, lambda2 = np.float32(SCALES)
    i2t = np.exp(scores * gamma2) / np.exp(scores * gamma1).sum(axis=0, keepdims=True)
    t2i = np.exp(scores * lambda2) / np.exp(scores * lambda1).sum(axis=1, keepdims=True)
    best = ranks(Scores(i2t, t2i), image_of_text)
    return [best.i2t, best.t2i]


def fused_fast(scores: np.ndarray, image_of_text: np.ndarray) -> list[np.ndarray]:
    best = ranks(RERANKERS["fast"](scores, *SCALES), image_of_text)
    return [best.i2t, best.t2i]


def looped_reciprocal(scores: np.ndarray, k: int) -> np.ndarray:
    """All results of every row by published code's way: two full sorts, then a search each."""
    forward, backward = np.argsort(-scores, axis=1), np.argsort(-scores, axis=0)
    for query, order in enumerate(forward):
        address = np.array([])
        for result in order[:k]:
            address = np.append(address, np.where(backward[:, result] == query)[0][0])
        order[:k] = order[:k][np.argsort(address, kind="stable")]
    return forward


def looped_multi(scores: np.ndarray, k: int, w1: float = 1.0, w2: float = 0.7) -> np.ndarray:
    """As `looped_reciprocal`, with the sum of three parts; the results beyond k stay below."""
    forward, backward = np.argsort(-scores, axis=1), np.argsort(-scores, axis=0)
    unit = (1 + scores.astype(np.float64)) / 2
    for query, order in enumerate(forward):
        address, value = np.array([]), np.zeros(k)
        for rank, result in enumerate(order[:k]):
            value[rank] = (w1 * unit[query, result] / np.sum(unit[:, result])
                           + np.exp(-0.05 * (rank + 1)))
            address = np.append(address, np.where(backward[:, result] == query)[0][0])
        for position, place in enumerate(np.argsort(address, kind="stable")):
            value[place] += w2 * np.exp(-0.05 * (position + 1))
        order[:k] = order[:k][np.argsort(-value, kind="stable")]
    return forward


def of_images(reorder: Callable[[np.ndarray, int], np.ndarray], k: int) -> Version:
    """Ranks of image queries from the order of all texts."""
    def i2t(scores: np.ndarray, image_of_text: np.ndarray) -> list[np.ndarray]:
        order = reorder(scores, k)
        return [np.array([1 + (image_of_text[row] == image).argmax()
                          for image, row in enumerate(order)])]
    return i2t


def of_texts(reorder: Callable[[np.ndarray, int], np.ndarray], k: int) -> Version:
    """Ranks of text queries from the order of all images."""
    def t2i(scores: np.ndarray, image_of_text: np.ndarray) -> list[np.ndarray]:
        order = reorder(scores.T, k)
        return [1 + (order == image_of_text[:, None]).argmax(axis=1)]
    return t2i


def ours(name: str, direction: str) -> Version:
    def rank(scores: np.ndarray, image_of_text: np.ndarray) -> list[np.ndarray]:
        return [RERANKERS[name](scores).ranks_of(direction, image_of_text)]
    return rank


# name: straightforward version, ours, share of images and texts it is measured on
PAIRS: dict[str, tuple[Version, Version, float]] = {
    "FR both ways": (printed_fast, fused_fast, 1),
    "RR i2t": (of_images(looped_reciprocal, 15), ours("reciprocal", "i2t"), 1),
    "RR t2i": (of_texts(looped_reciprocal, 20), ours("reciprocal", "t2i"), 0.2),
    "MR i2t": (of_images(looped_multi, 30), ours("multi", "i2t"), 0.4),
    "MR t2i": (of_texts(looped_multi, 30), ours("multi", "t2i"), 0.2),
}


def test_set(images: int, texts: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines of random vectors, those of texts near their image's, and image_of_text."""
    rng = np.random.default_rng(0)
    image_of_text = np.sort(np.arange(texts) % images)
    of_image = rng.standard_normal((images, 64), dtype=np.float32)
    of_text = of_image[image_of_text] + 2 * rng.standard_normal((texts, 64), dtype=np.float32)
    of_text += 0.5 * rng.standard_normal(64, dtype=np.float32)  # what all share, which makes hubs
    for vectors in (of_image, of_text):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return of_image @ of_text.T, image_of_text


def measure(name: str, which: int, images: int, texts: int, repeats: int) -> None:
    """Print peak MB beyond the scores, and least CPU and wall seconds."""
    version, share = PAIRS[name][which], PAIRS[name][2]
    version(*test_set(40, 200))  # warm up
    scores, image_of_text = test_set(int(images * share), int(texts * share))
    before, seconds = peak_mb(), []
    while len(seconds) < repeats and sum(cpu for cpu, _ in seconds) < ENOUGH:
        cpu, wall = time.process_time(), time.perf_counter()
        version(scores, image_of_text)
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    print(peak_mb() - before, *min(seconds))


def check_equal() -> None:
    """Exit unless the versions agree where no scores tie (float32 cosines seldom do)."""
    scores, image_of_text = test_set(300, 1500)
    for name, (slow, fast, _) in PAIRS.items():
        for a, b in zip(slow(scores, image_of_text), fast(scores, image_of_text), strict=True):
            if not np.array_equal(a, b):
                sys.exit(f"{name}: the two versions disagree about {np.count_nonzero(a != b)} of "
                         f"{len(a)} ranks")


def grid() -> None:
    """Print the seconds of the grid of Fig. 7 on 1,000 images and 5,000 texts."""
    scores, image_of_text = test_set(1000, 5000)
    start = time.perf_counter()
    fast_grid(scores, image_of_text, GRID, GRID)
    print(time.perf_counter() - start)


def in_turns(images: int, texts: int, rounds: int, turns: int = 5) -> pd.DataFrame:
    """CPU seconds of every re-ranker, both directions and the ranks after it, beyond plain ranks:
    arm, seed (the round), rerank_cpu_seconds, dataset, model."""
    scores, image_of_text = test_set(images, texts)
    ways = {"plain": lambda given: given, **RERANKERS}
    taken = []
    for number in range(-1, rounds * turns):  # the first turn warms up
        first = number % len(ways)
        for name in [*ways][first:] + [*ways][:first]:
            start = time.process_time()
            ranks(ways[name](scores), image_of_text)
            taken.append((number // turns, name, time.process_time() - start))
    table = pd.DataFrame(taken, columns=["seed", "arm", RERANKING])
    middle = table[table["seed"] >= 0].pivot_table(RERANKING, "seed", "arm", "median")
    beyond = middle[list(RERANKERS)].sub(middle["plain"], axis=0)
    return beyond.melt(ignore_index=False, value_name=RERANKING).reset_index()[
        ["arm", "seed", RERANKING]].assign(dataset="random scores", model=(
            f"{images:,} images and {texts:,} texts"))


def save(rounds: int) -> None:
    """Keep the rounds, and print the median of each re-ranker."""
    table = in_turns(1000, 5000, rounds)
    print(table.groupby("arm", sort=False)[RERANKING].median().round(3).to_string())
    write_atomic(times_file("rerank"), table.round(5).to_csv(index=False).encode())


def child(*arguments: object, threads: int = 1) -> list[float]:
    """The numbers that this script prints in a fresh process."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True,
                          capture_output=True, text=True, env=environment)
    return [float(x) for x in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sizes = {"images": 5000, "texts": 25000, "repeats": 3}
    for name in sizes:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--save", action="store_true", help="keep rounds of turns instead")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", choices=[*PAIRS, "grid"], help=argparse.SUPPRESS)
    parser.add_argument("--which", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.save and any(vars(given)[name] is not None for name in sizes):
        parser.error("--save measures 1,000 images and 5,000 texts: leave --images, --texts and "
                     "--repeats out")
    if given.rounds < FEWEST:
        parser.error(f"--rounds must be at least {FEWEST}, got {given.rounds}: fewer pairs decide "
                     "no claim")
    for name, usual in sizes.items():
        vars(given)[name] = usual if vars(given)[name] is None else vars(given)[name]
    if not 150 <= given.images <= given.texts:
        parser.error("--images must be at least 150, and --texts at least --images")
    if given.only == "grid":
        return grid()
    if given.only:
        return measure(given.only, given.which, given.images, given.texts, given.repeats)
    check_equal()
    if given.save:
        return save(given.rounds)
    for name, (_, _, share) in PAIRS.items():
        size = ["--images", given.images, "--texts", given.texts]
        slow, fast = (child("--only", name, "--which", which, *size, "--repeats", given.repeats)
                      for which in (0, 1))
        print(f"{name}, {int(given.images * share)} x {int(given.texts * share)}: "
              f"{slow[1] / fast[1]:.1f}x CPU, {slow[2] / fast[2]:.1f}x wall; "
              f"{slow[1]:.2f} against {fast[1]:.2f} s CPU, "
              f"{slow[0]:.0f} against {fast[0]:.0f} MB beyond the scores", flush=True)
    print(f"grid of Fig. 7, {len(GRID)} x {len(GRID)} on 1000 x 5000, two threads: "
          f"{child('--only', 'grid', threads=2)[0]:.1f} s")


if __name__ == "__main__":
    main()
