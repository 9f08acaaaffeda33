"""Time and memory of Kendall's tau-b in both directions, against scipy row by row.

    python benchmarks/kendall_tau.py [--images 1000 --texts 5000 --repeats 3]

Prints the ratio of CPU seconds, one thread, and the peak memory beyond scores and relevance,
measured in a fresh process each; first it checks that both give the same numbers.
"""

import argparse
import os
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
from _memory import peak_mb  # noqa: E402
from scipy.stats import kendalltau  # noqa: E402

from itr_study.metrics import Truth, kendall_rows, per_query  # noqa: E402


def by_row(scores: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """The straightforward version: one call of scipy for each image and each text."""
    rows = [*zip(scores, relevance, strict=True), *zip(scores.T, relevance.T, strict=True)]
    return np.array([kendalltau(s, r).statistic for s, r in rows])


def in_bins(scores: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """The package's version."""
    truth = Truth(np.arange(scores.shape[1]) % len(scores), graded=lambda part: relevance[part])
    found, = per_query(scores, truth, kendall_rows())
    return np.concatenate((found["i2t"], found["t2i"]))


VERSIONS = {"scipy": by_row, "bins": in_bins}


def data(images: int, texts: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that know something of the relevance, and relevance in steps of 1/1000."""
    rng = np.random.default_rng(0)
    relevance = rng.integers(0, 1001, (images, texts)).astype(np.float32) / 1000
    return relevance + rng.standard_normal((images, texts), dtype=np.float32), relevance


def measure(version: str, images: int, texts: int, repeats: int) -> None:
    """Print peak MB beyond the input, and least CPU and wall seconds."""
    scores, relevance = data(images, texts)
    VERSIONS[version](scores[:20, :100], relevance[:20, :100])  # warm up
    before, seconds = peak_mb(), []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        VERSIONS[version](scores, relevance)
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    print(peak_mb() - before, *min(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=VERSIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.texts < given.images:
        parser.error("every image needs a text: --texts must be at least --images")
    if given.only:
        measure(given.only, given.images, given.texts, given.repeats)
        return
    slow, fast = (version(*data(100, 700)) for version in VERSIONS.values())
    if not np.allclose(slow, fast, rtol=0, atol=1e-12):
        sys.exit("the two versions disagree about tau")
    results = {}
    for version in VERSIONS:
        command = [sys.executable, __file__, "--only", version, "--images", str(given.images),
                   "--texts", str(given.texts), "--repeats", str(given.repeats)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        extra, cpu, wall = results[version] = [float(x) for x in output]
        print(f"{version}: {cpu:.3f} s CPU ({wall:.3f} s wall), {extra:.1f} MB beyond the input")
    slow, fast = results["scipy"], results["bins"]
    print(f"ratio: {slow[1] / fast[1]:.1f}x CPU, {slow[2] / fast[2]:.1f}x wall; equal to 1e-12")


if __name__ == "__main__":
    main()
