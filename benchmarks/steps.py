"""What losses cost in a training step, model and optimizer included; one on the whole list too.

    python benchmarks/steps.py [--rounds 12 --steps 5 --batch 128 --size 1024 --save]

`vsepp` with a GRU, `vse_infinity` and `two_branch` on generated scenes; CPU time of one thread.
The objectives take turns, step by step, so that a change of the machine's speed meets all of them.
A round is the median of a few steps of each; the ledger pairs rounds as it pairs seeds, so --save
keeps those of the first model, the papers' kind, in evidence/common/steps.csv. For Table VIII of
listwise it keeps what an epoch of 30,000 pairs and a test take in the first two, in epochs.csv.
Goal: a loss on the list adds at most 5 % to the step of vsepp with a GRU of 1024.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import pandas as pd  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from itr_study.data.batches import EncodedSplit  # noqa: E402
from itr_study.evaluation.evaluate import encode, score  # noqa: E402
from itr_study.files.atomic import write_atomic  # noqa: E402
from itr_study.lab.runs.config import build_objective  # noqa: E402
from itr_study.lab.runs.data import encoded_data  # noqa: E402
from itr_study.lab.runs.run import build_model  # noqa: E402
from itr_study.lab.studies.arms import TERMS, base_config, sum_of  # noqa: E402
from itr_study.lab.studies.nb06_kendall import BRANCHES, changed  # noqa: E402
from itr_study.lab.studies.plans import choose  # noqa: E402
from itr_study.lab.studies.timing import EPOCH, STEPS, TEST, times_file  # noqa: E402
from itr_study.models import MODELS  # noqa: E402
from itr_study.training.devices import cpu_multiplies_half  # noqa: E402
from itr_study.training.objective import Objective  # noqa: E402

PAIRS, TESTED = 30_000, 1000  # of an epoch, as Flickr8k has; images of a test, each with five texts
LISTWISE = ("hardest", "hardest+listwise")
BINARY = TERMS["listwise"] | {"labels": "binary"}
# Terms by arm, and the arm that each is held against.
OBJECTIVES = {"sum": ("sum",), "top5": ("top5",),
              "hardest": ("hardest",), "hardest+listwise": ("hardest", "listwise"),
              "hardest+listwise(binary)": ("hardest", BINARY),
              "soft": ("soft",), "bcls": BRANCHES["bcls"],
              "beta=0.05": ("soft", changed("windows", stride=0.05)),
              "beta=0.6": ("soft", changed("windows", stride=0.6)),
              "soft+kendall": ("soft", "kendall")}
AGAINST = {"top5": "sum", "hardest+listwise": "hardest", "hardest+listwise(binary)": "hardest",
           "bcls": "soft", "beta=0.05": "soft", "beta=0.6": "soft", "soft+kendall": "soft"}


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, objective: Objective,
          train: EncodedSplit, batch: int) -> Iterator[float]:
    """CPU milliseconds of one training step after another, always of the same batches."""
    generator = torch.Generator().manual_seed(0)
    while True:
        texts = torch.randperm(train.n_texts, generator=generator)[:batch].numpy()
        start = time.process_time()
        given = train.pair_batch(texts)
        with torch.autocast("cpu", torch.bfloat16, enabled=cpu_multiplies_half()):
            output = model(given)
        value, _ = objective(output, given, train)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        yield 1000 * (time.process_time() - start)


def measure(name: str, arguments: dict[str, int], rounds: int, count: int,
            batch: int) -> pd.DataFrame:
    """The median step of every objective in every round: arm, seed (the round), dataset, model,
    step_milliseconds."""
    start = base_config("scenes", name, choose("05_listwise", "quick"))
    start = start.with_(**{f"model_arguments.{key}": value for key, value in arguments.items()})
    start = start.with_(data_options={"train": 600, "dev": 50, "test": 50})
    data = encoded_data(sum_of(start, *TERMS), None)
    model = build_model(start, data.inputs).train()  # one for all: memory lies alike for each
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    turns = {label: steps(model, optimizer, build_objective(sum_of(start, *terms).objective),
                          data.splits["train"], batch) for label, terms in OBJECTIVES.items()}
    taken = []
    for number in range(-2, rounds * count):  # the first steps warm up
        first = number % len(turns)  # whoever comes first finds the batch in no cache
        for label in [*turns][first:] + [*turns][:first]:
            taken.append((label, number // count, next(turns[label])))
    table = pd.DataFrame(taken, columns=["arm", "seed", STEPS])
    table = table[table["seed"] >= 0].groupby(["arm", "seed"], sort=False, as_index=False).median()
    label = " of ".join([MODELS[start.model].display_name, *map(str, arguments.values())])
    return table.assign(dataset="scenes", model=f"{label} on {start.images}, "
                                                f"{start.tokens or start.sentences}")


def epochs(table: pd.DataFrame, name: str, arguments: dict[str, int], batch: int) -> pd.DataFrame:
    """Seconds of an epoch, by the steps of `measure`, and of a test, which no loss changes: model,
    arm, seed (the round), epoch_seconds, test_seconds, precision of the steps."""
    config = base_config("scenes", name, choose("05_listwise", "quick")).with_(
        data_options={"train": 600, "dev": 50, "test": TESTED},
        **{f"model_arguments.{key}": value for key, value in arguments.items()})
    data = encoded_data(config, None)
    model, seconds = build_model(config, data.inputs).eval(), {}
    for number in range(-1, table["seed"].max() + 1):  # the first warms up
        start = time.process_time()
        score(model, *encode(model, data.splits["test"]))
        seconds[number] = time.process_time() - start
    part = table[table["arm"].isin(LISTWISE)]
    return pd.DataFrame({"model": MODELS[config.model].display_name, "arm": part["arm"],
                         "seed": part["seed"], EPOCH: part[STEPS] * -(-PAIRS // batch) / 1000,
                         TEST: part["seed"].map(seconds),
                         "precision": "bfloat16" if cpu_multiplies_half() else "float32"})


def show(name: str, table: pd.DataFrame) -> None:
    """The step of every objective, and how much longer it is than the one it is held against."""
    middle = table.groupby("arm", sort=False)[STEPS].median()
    for label, value in middle.items():
        against = AGAINST.get(label)
        more = f"  {100 * (value / middle[against] - 1):+.1f} % of {against}" if against else ""
        print(f"{name:12} {label:26} {value:7.1f} ms a step{more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=5, help="of each objective in a round")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--save", action="store_true", help="keep the rounds of vsepp+gru, and the "
                        "seconds of an epoch and of a test")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as home:
        os.environ["ITR_STUDY_HOME"] = home
        timed = []
        for name in ("vsepp+gru", "vse_infinity", "two_branch"):
            arguments = {} if name == "two_branch" else {"size": given.size}
            table = measure(name, arguments, given.rounds, given.steps, given.batch)
            show(name, table)
            if given.save and name == "vsepp+gru":
                write_atomic(times_file("steps"), table.round(3).to_csv(index=False).encode())
            if given.save and arguments:
                timed.append(epochs(table, name, arguments, given.batch))
        if timed:
            table = pd.concat(timed).round(3)
            write_atomic(times_file("epochs"), table.to_csv(index=False).encode())


if __name__ == "__main__":
    main()
