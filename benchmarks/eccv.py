"""Time and memory of all COCO, CxC and ECCV Caption metrics from a 5,000 x 25,000 matrix.

    python benchmarks/eccv.py [--repeats 3]

Against the package `eccv-caption` given full rankings (np.argsort of every row and column, shared
ids), and against a straightforward form without it that sorts every query once. Each runs in a
fresh process with one thread; the slow ones once: about a minute and 3 GB of memory.
Scores have no ties, so all three must agree to 1e-12.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
from _memory import peak_mb  # noqa: E402

from itr_study.metrics.eccv import TruthSets, eccv_table, read_eccv  # noqa: E402

KS = (1, 5, 10)
PRIME = 25013  # above the number of captions: r + c modulo it differs along rows and columns


def with_package(scores: np.ndarray, image_ids: list, text_ids: list, sets: TruthSets) -> dict:
    """Full rankings as dicts of ids, then the package's compute_all_metrics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optional packages that are absent
        from eccv_caption import Metrics
        package = Metrics()
    i2t = {i: [text_ids[j] for j in np.argsort(-scores[a])] for a, i in enumerate(image_ids)}
    t2i = {t: [image_ids[j] for j in np.argsort(-scores[:, a])] for a, t in enumerate(text_ids)}
    found = package.compute_all_metrics(i2t, t2i, target_metrics=(
        "coco_1k_recalls", "coco_5k_recalls", "cxc_recalls", "eccv_r1", "eccv_map_at_r",
        "eccv_rprecision"), Ks=KS)
    names = {name: name.replace("coco_", "coco").replace("rprecision", "r_precision")
             for name in found}
    return {f"{d}_{names[name]}": float(found[name][d]) for name in found for d in ("i2t", "t2i")}


def by_sorting(scores: np.ndarray, image_ids: list, text_ids: list, sets: TruthSets) -> dict:
    """The straightforward form: sort the gallery of every query once, look its matches up."""
    folds = sets.order.reshape(5, -1).tolist()
    fold_of_text = {t: f for f, texts in enumerate(folds) for t in texts}
    fold_of_image = {i: fold_of_text[x[0]] for i, x in sets.coco.i2t.items()}
    table = {}
    for d, matrix, queries, items, own, other in (
            ("i2t", scores, image_ids, text_ids, fold_of_image, fold_of_text),
            ("t2i", scores.T, text_ids, image_ids, fold_of_text, fold_of_image)):
        coco, cxc, eccv = (vars(sets)[name]._asdict()[d] for name in ("coco", "cxc", "eccv"))
        column = {item: a for a, item in enumerate(items)}
        fold = np.array([other[item] for item in items])
        values: dict[str, list] = {}
        for a, query in enumerate(queries):
            order = np.argsort(-matrix[a])
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(1, len(order) + 1)
            within = order[fold[order] == own[query]]
            mine = {column[i] for i in coco[query]}
            best = next(r for r, j in enumerate(within, 1) if j in mine)
            bests = {"coco1k": best, "coco5k": min(rank[j] for j in mine)}
            if query in cxc:
                bests["cxc"] = min(rank[column[i]] for i in cxc[query])
            for name, best in bests.items():
                for k in KS:
                    values.setdefault(f"{d}_{name}_r{k}", []).append(best <= k)
            if query in eccv:
                size = len(set(eccv[query]))
                ranks = sorted(rank[column[i]] for i in set(eccv[query]) if i in column)
                found = [(p, r) for p, r in enumerate(ranks, 1) if r <= size]
                values.setdefault(f"{d}_eccv_r1", []).append(ranks[0] == 1)
                values.setdefault(f"{d}_eccv_r_precision", []).append(len(found) / size)
                values.setdefault(f"{d}_eccv_map_at_r", []).append(
                    sum(p / r for p, r in found) / size)
        table |= {key: float(np.mean(each)) for key, each in values.items()}
    return table


VERSIONS = {"package": with_package, "sorted": by_sorting, "counted": eccv_table}


def data(sets: TruthSets) -> tuple[np.ndarray, list, list]:
    """Scores (5,000 x 25,000) of a model that knows something; no two in a row or column tie."""
    rng = np.random.default_rng(0)
    text_ids = sets.order.tolist()
    image_ids = list(dict.fromkeys(sets.coco.t2i[t][0] for t in text_ids))
    rows, columns = (rng.permutation(PRIME)[:n].astype(np.int32) for n in (5000, 25000))
    scores = np.empty((5000, 25000), np.float32)
    for a, row in enumerate(rows):
        scores[a] = (row + columns) % PRIME
    row, column = ({one: a for a, one in enumerate(ids)} for ids in (image_ids, text_ids))
    # sums of different fractions never tie either
    for of, more in ((sets.cxc, 12000.25), (sets.coco, 12000.125), (sets.eccv, 0.0625)):
        for image, texts in of.i2t.items():
            scores[row[image], [column[t] for t in texts if t in column]] += more
    return scores, image_ids, text_ids


def measure(version: str, repeats: int) -> None:
    """Print as JSON the peak MB beyond the scores, least CPU and wall seconds, and the table."""
    sets = read_eccv()
    scores, image_ids, text_ids = data(sets)
    before, seconds = peak_mb(), []
    for _ in range(repeats if version == "counted" else 1):
        cpu, wall = time.process_time(), time.perf_counter()
        table = VERSIONS[version](scores, image_ids, text_ids, sets)
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    print(json.dumps([peak_mb() - before, *min(seconds), table]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="of the fast version")
    parser.add_argument("--only", choices=VERSIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        measure(given.only, given.repeats)
        return
    results = {}
    for version in VERSIONS:
        command = [sys.executable, __file__, "--only", version, "--repeats", str(given.repeats)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        extra, cpu, wall, table = results[version] = json.loads(done.stdout.splitlines()[-1])
        print(f"{version}: {cpu:.3f} s CPU ({wall:.3f} s wall), {extra:.0f} MB beyond the scores")
    fast = results["counted"]
    for version in ("package", "sorted"):
        slow = results[version]
        apart = max(abs(slow[3][key] - fast[3][key]) for key in fast[3])
        if slow[3].keys() != fast[3].keys() or apart > 1e-12:
            sys.exit(f"{version} and counted disagree by {apart}")
        print(f"ratio to {version}: {slow[1] / fast[1]:.1f}x CPU, {slow[2] / fast[2]:.1f}x wall; "
              f"all {len(fast[3])} numbers equal to {apart:.0e}")


if __name__ == "__main__":
    main()
