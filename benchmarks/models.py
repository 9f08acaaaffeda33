"""What the models of notebook 09 cost: parameters, seconds to score a test split, memory.

    python benchmarks/models.py [--dataset scenes --data DATA --repeats 3] [--save]

Every model of `lab.studies.nb09_stronger_models` at the size of its base, with first weights: what
a score costs does not depend on what was learnt. Encoding and scoring all images with all texts of
test, CPU seconds of one thread, the least of the repeats, and what that raises the peak of memory
by (0: less than loading the data took), each in a fresh process. With --save the table is kept in
evidence/<dataset>/models.csv, which the leaderboard of notebook 09 reads.
"""

import argparse
import os
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import pandas as pd  # noqa: E402
import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402

from itr_study.evaluation.evaluate import encode, score  # noqa: E402
from itr_study.files.atomic import write_atomic  # noqa: E402
from itr_study.lab.runs.data import encoded_data  # noqa: E402
from itr_study.lab.runs.run import build_model  # noqa: E402
from itr_study.lab.studies.bases import base  # noqa: E402
from itr_study.lab.studies.nb09_stronger_models import BASES  # noqa: E402
from itr_study.lab.studies.timing import COSTS, times_file  # noqa: E402


def measure(model: str, dataset: str, root: str | None, repeats: int) -> None:
    """Print millions of parameters, least CPU seconds to score test, MB that the peak rises by."""
    torch.set_num_threads(1)
    config = base(dataset, BASES[model])
    data = encoded_data(config, root)
    built = build_model(config, data.inputs).eval()
    before, seconds = peak_mb(), []
    for _ in range(repeats):
        start = time.process_time()
        score(built, *encode(built, data.splits["test"]))
        seconds.append(time.process_time() - start)
    count = sum(weights.numel() for weights in built.parameters()) / 1e6
    print(count, min(seconds), peak_mb() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="scenes")
    parser.add_argument("--data", help="folder of the real data sets")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="keep the table for notebook 09")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.model:
        measure(given.model, given.dataset, given.data, given.repeats)
        return
    records = []
    for model in BASES:
        done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--model", model],
                              check=True, stdout=subprocess.PIPE, text=True)
        numbers = [float(word) for word in done.stdout.split()[-3:]]
        records.append((model, *numbers))
        print(model, "{:.2f} million parameters, {:.2f} s, {:.0f} MB".format(*numbers), flush=True)
    table = pd.DataFrame(records, columns=list(COSTS))
    if given.save:
        write_atomic(times_file("models", given.dataset),
                     table.round(3).to_csv(index=False).encode())


if __name__ == "__main__":
    main()
