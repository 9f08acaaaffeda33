"""Time and memory of recall in both directions, against one argsort per query.

    python benchmarks/recall.py [--images 5000 --texts 25000 --repeats 3]

Prints the ratio of CPU seconds, one thread, and the peak memory beyond the scores, measured in a
fresh process each.
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

from itr_study.metrics import ranks  # noqa: E402


def argsort_ranks(scores: np.ndarray, image_of_text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The straightforward version: sort the results of every query, look where its match is."""
    i2t, t2i = np.zeros(len(scores), np.int64), np.zeros(scores.shape[1], np.int64)
    for image in range(len(scores)):
        order = np.argsort(scores[image])[::-1]
        matches = np.flatnonzero(image_of_text == image)
        i2t[image] = 1 + min(np.where(order == text)[0][0] for text in matches)
    for text in range(scores.shape[1]):
        order = np.argsort(scores[:, text])[::-1]
        t2i[text] = 1 + np.where(order == image_of_text[text])[0][0]
    return i2t, t2i


def counted_ranks(scores: np.ndarray, image_of_text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The package's version."""
    found = ranks(scores, image_of_text)
    return found.i2t, found.t2i


VERSIONS = {"argsort": argsort_ranks, "counted": counted_ranks}


def measure(version: str, images: int, texts: int, repeats: int) -> None:
    """Print peak MB beyond the scores, and least CPU and wall seconds."""
    rng = np.random.default_rng(0)
    image_of_text = np.arange(texts) % images  # every image has a text, whatever the numbers
    image_of_text.sort()
    scores = rng.standard_normal((images, texts), dtype=np.float32)
    scores[image_of_text, np.arange(texts)] += 3
    small = scores[:50, :np.searchsorted(image_of_text, 50)].copy()
    VERSIONS[version](small, image_of_text[:small.shape[1]])  # warm up
    before, seconds = peak_mb(), []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        VERSIONS[version](scores, image_of_text)
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    print(peak_mb() - before, *min(seconds))


def check_equal() -> None:
    """Exit unless both versions agree where no scores tie (random float32 numbers do tie)."""
    scores = np.random.default_rng(0).permutation(200 * 1000).reshape(200, 1000).astype(np.float32)
    image_of_text = np.random.default_rng(1).permutation(np.arange(1000) % 200)
    slow, fast = (version(scores, image_of_text) for version in VERSIONS.values())
    if not all(np.array_equal(a, b) for a, b in zip(slow, fast, strict=True)):
        sys.exit("the two versions disagree about the ranks")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--texts", type=int, default=25000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=VERSIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.texts < given.images:
        parser.error("every image needs a text: --texts must be at least --images")
    if given.only:
        measure(given.only, given.images, given.texts, given.repeats)
        return
    check_equal()
    results = {}
    for version in VERSIONS:
        command = [sys.executable, __file__, "--only", version, "--images", str(given.images),
                   "--texts", str(given.texts), "--repeats", str(given.repeats)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        results[version] = [float(x) for x in output]
        extra, cpu, wall = results[version][:3]
        print(f"{version}: {cpu:.3f} s CPU ({wall:.3f} s wall), {extra:.1f} MB beyond the scores")
    slow, fast = results["argsort"], results["counted"]
    print(f"ratio: {slow[1] / fast[1]:.1f}x CPU, {slow[2] / fast[2]:.1f}x wall; "
          "equal ranks where no scores tie")


if __name__ == "__main__":
    main()
