"""What losses cost in a training step, model and optimizer included; one on the whole list too.

    python benchmarks/steps.py [--steps 14 --batch 128 --size 1024]

`vsepp` with a GRU, and `two_branch`, on generated scenes; CPU seconds of one thread. The objectives
take turns, step by step, so that a change of the machine's speed meets all of them; the share is of
medians. Goal: at most 5 % for vsepp with a GRU of 1024.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import torch  # noqa: E402
from torch import nn  # noqa: E402

from itr_study.data.batches import EncodedSplit  # noqa: E402
from itr_study.runs.config import build_objective  # noqa: E402
from itr_study.runs.data import encoded_data  # noqa: E402
from itr_study.runs.run import build_model  # noqa: E402
from itr_study.studies.arms import TERMS, base_config, sum_of  # noqa: E402
from itr_study.studies.profiles import choose  # noqa: E402
from itr_study.training.objective import Objective  # noqa: E402

OBJECTIVES = {"sum": ("sum",), "top5": ("top5",),
              "hardest": ("hardest",), "hardest+listwise": ("hardest", "listwise"),
              "soft": ("soft",), "soft+windows": ("soft", "windows"),
              "soft+kendall": ("soft", "kendall")}


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, objective: Objective,
          train: EncodedSplit, batch: int) -> Iterator[float]:
    """CPU seconds of one training step after another, always of the same batches."""
    generator = torch.Generator().manual_seed(0)
    while True:
        texts = torch.randperm(train.n_texts, generator=generator)[:batch].numpy()
        start = time.process_time()
        given = train.pair_batch(texts)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(given)
        value, _ = objective(output, given, train)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        yield time.process_time() - start


def compare(name: str, arguments: dict[str, int], count: int, batch: int) -> None:
    """Print the step of every objective, and how much longer it is than its pairwise loss."""
    start = base_config("scenes", name, choose("05_listwise", "quick"))
    start = start.with_(**{f"model_arguments.{key}": value for key, value in arguments.items()})
    start = start.with_(data_options={"train": 600, "dev": 50, "test": 50})
    data = encoded_data(sum_of(start, *TERMS), None)
    train, lines = data.splits["train"], {}
    model = build_model(start, data.inputs).train()  # one for all: memory lies alike for each
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for label, terms in OBJECTIVES.items():
        objective = build_objective(sum_of(start, *terms).objective)
        lines[label] = steps(model, optimizer, objective, train, batch)
    seconds = {label: [] for label in lines}
    for number in range(count + 2):
        turn = number % len(lines)  # whoever comes first finds the batch in no cache
        for label in [*lines][turn:] + [*lines][:turn]:
            taken = next(lines[label])
            if number >= 2:  # the first steps warm up
                seconds[label].append(taken)
    middle = {label: statistics.median(taken) for label, taken in seconds.items()}
    for label, value in middle.items():
        alone = middle[label.split("+")[0]]
        more = "" if label == label.split("+")[0] else f"  {100 * (value / alone - 1):+.0f} %"
        print(f"{name:12} {label:18} {1000 * value:7.1f} ms a step{more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--size", type=int, default=1024)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as home:
        os.environ["ITR_STUDY_HOME"] = home
        compare("vsepp+gru", {"size": given.size}, given.steps, given.batch)
        compare("two_branch", {}, given.steps, given.batch)


if __name__ == "__main__":
    main()
