"""What a training step costs at the papers' own sizes: CPU seconds and memory, preset by preset.

    python benchmarks/presets.py [--pairs 8 --steps 3 --presets dvse listwise+sgr] [--save]

A preset of each model of `lab.studies.presets` on made-up features of the sizes that its paper's
model read, with captions of 12 words from 8,500, which are ours: forward, losses, gradient,
clipping and update in float32, each preset in a fresh process. CPU seconds of one thread, the
median of some steps after a first one; none is begun once they have taken two minutes, so that the
table says how many there were. Memory is what model, optimizer and steps raise the peak by. Eight
pairs show that it works, not what it costs: with --save every preset is measured with all pairs of
its batch, 128 where the paper states any, and the table is kept in evidence/common/presets.csv.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402
from torch.nn.utils import clip_grad_norm_  # noqa: E402

from itr_study.arithmetic import instructions  # noqa: E402
from itr_study.data.batches import EncodedSplit, InputSpec  # noqa: E402
from itr_study.files.atomic import write_atomic  # noqa: E402
from itr_study.lab.runs.config import RunConfig, build_objective  # noqa: E402
from itr_study.lab.runs.run import build_model, git_commit  # noqa: E402
from itr_study.lab.studies.presets import preset, preset_tables  # noqa: E402
from itr_study.lab.studies.timing import times_file  # noqa: E402
from itr_study.training.loop import forward  # noqa: E402
from itr_study.training.settings import build_optimizer  # noqa: E402

PAIRS, STEPS, WORDS, VOCABULARY, LABELS = 8, 3, 12, 8500, 384
LEAST = 6  # pairs: top-k takes five negatives of each query
ENOUGH = 120  # CPU seconds after which no further step is begun
FEW = [*{table["model"]: name for name, table in preset_tables().items()}.values()]  # one a model
COLUMNS = ("preset", "model", "pairs", "parameters", "steps", "step_seconds", "memory_mb",
           "instructions", "commit")


def config_of(name: str) -> RunConfig:
    """The preset; what data it names does not matter, for none is read."""
    return preset(name, "scenes", "detector")


def made_up(name: str, pairs: int) -> tuple[InputSpec, EncodedSplit]:
    """Random inputs of the sizes that the paper's model read, for one batch, and what they are."""
    random, config = np.random.default_rng(0), config_of(name)
    given = preset_tables()[name]["inputs"]
    words, sentences = bool(config.tokens), given.get("sentence_size", 0)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    vectors = torch.from_numpy(normal(VOCABULARY, 300)) if config.tokens == "glove" else None
    tokens = [*random.integers(1, VOCABULARY, (pairs, WORDS))] if words else None
    split = EncodedSplit("train", np.arange(pairs),
                         normal(pairs, 1, given["regions"], given["region_size"]), tokens=tokens,
                         sentences=normal(pairs, sentences) if sentences else None,
                         label_vectors={"minilm": normal(pairs, LABELS)})
    return InputSpec(given["region_size"], VOCABULARY * words, sentences, vectors), split


class Step:
    """A preset's model before its first step, and `take`, which makes one with all pairs."""

    def __init__(self, name: str, pairs: int):
        self.settings = config_of(name).settings
        inputs, self.split = made_up(name, pairs)
        self.before = peak_mb()
        self.model = build_model(config_of(name), inputs).train()
        self.objective = build_objective(config_of(name).objective)
        self.optimizer = build_optimizer(self.model, self.settings)

    def take(self) -> float:
        """Train on all pairs once; the loss."""
        batch = self.split.pair_batch(np.arange(self.split.n_texts))
        loss, _ = self.objective(forward(self.model, batch, self.settings.precision), batch,
                                 self.split)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        self.optimizer.step()
        return loss.item()


def measure(name: str, pairs: int, most: int) -> tuple[float, int, float, float]:
    """Millions of parameters, steps timed, CPU seconds of the one in the middle, MB."""
    torch.set_num_threads(1)
    step, taken = Step(name, pairs), []
    step.take()
    while len(taken) < most and sum(taken) < ENOUGH:
        start = time.process_time()
        step.take()
        taken.append(time.process_time() - start)
    count = sum(weights.numel() for weights in step.model.parameters()) / 1e6
    return count, len(taken), statistics.median(taken), peak_mb() - step.before


def measured(name: str, pairs: int, most: int) -> list[float]:
    """What `measure` returns, from a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--only", name, "--pairs", str(pairs),
                           "--steps", str(most)], check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in done.stdout.split()[-4:]]


def table(names: list[str], pairs: int | None, most: int) -> pd.DataFrame:
    """A line for each preset, printed as it comes; pairs: None: the batch of each."""
    records = []
    for name in names:
        config = config_of(name)
        batch = pairs or config.settings.batch_size
        count, steps, seconds, memory = measured(name, batch, most)
        print(f"{name:22} {batch:3} pairs: {seconds:7.3f} s a step, {memory:6.0f} MB, "
              f"{count:5.1f} million parameters (steps timed: {steps:.0f})", flush=True)
        records.append((name, config.model, batch, round(count, 3), int(steps), round(seconds, 3),
                        round(memory), instructions(), git_commit()))
    return pd.DataFrame(records, columns=list(COLUMNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, help=f"of a step ({PAIRS})")
    parser.add_argument("--steps", type=int, default=STEPS, help="timed, at most")
    parser.add_argument("--presets", nargs="+", choices=preset_tables(), metavar="NAME")
    parser.add_argument("--save", action="store_true", help="all, with the papers' batches")
    parser.add_argument("--only", choices=preset_tables(), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.pairs is not None and given.pairs < LEAST or given.steps < 1:
        parser.error(f"--pairs must be at least {LEAST} and --steps at least 1")
    if given.save and (given.pairs or given.presets):
        parser.error("--save measures all presets with the papers' batches: leave --pairs and "
                     "--presets out")
    if given.only:
        print(*measure(given.only, given.pairs, given.steps))
        return
    if given.save:
        found = table([*preset_tables()], None, given.steps)
        write_atomic(times_file("presets"), found.to_csv(index=False).encode())
    else:
        table(given.presets or FEW, given.pairs or PAIRS, given.steps)


if __name__ == "__main__":
    main()
