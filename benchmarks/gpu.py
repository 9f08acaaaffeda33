"""What a card computes, and how long a training step takes there, preset by preset.

    python benchmarks/gpu.py [--device cuda --pairs 128 --steps 20] [--save]

A preset of each model of `lab.studies.presets`, with made-up inputs of its paper's sizes
(`benchmarks/presets.py`). Values: loss and gradient of a first step with eight pairs, in full
float32, beside those of the CPU. Time: the median of some steps, wall clock, the card waited for,
with all pairs of the preset's batch; in float32 (products as "auto" makes them) and in bfloat16,
each as it is and through torch.compile. Memory is the most that torch held on the card. With --save
the table is kept in figures/common/gpu.csv, with the name of the card.
"""

import argparse
import statistics
import time

import numpy as np
import pandas as pd
import presets
import torch
from torch.nn.utils import clip_grad_norm_

from itr_study.files.atomic import write_atomic
from itr_study.files.paths import project_root
from itr_study.lab.runs.config import build_objective
from itr_study.lab.runs.run import build_model
from itr_study.training.devices import choose_device, float32_products
from itr_study.training.loop import forward
from itr_study.training.settings import build_optimizer

FEW_PAIRS, WARM = 8, 3  # pairs whose values are compared; steps before those that are timed


def gradient_of(name: str, device: torch.device) -> tuple[float, torch.Tensor]:
    """Loss, and gradient (P,) on the host, of a step before any update."""
    step = presets.Step(name, FEW_PAIRS)
    step.model.eval().to(device)  # no dropout: its draws differ between devices
    with float32_products(device, "highest"):
        batch = step.split.pair_batch(np.arange(FEW_PAIRS)).to(device)
        loss, _ = step.objective(forward(step.model, batch, "float32"), batch, step.split)
        loss.backward()
    return loss.item(), torch.cat([weight.grad.flatten().cpu() for weight in
                                   step.model.parameters() if weight.grad is not None])


def values(name: str, device: torch.device) -> tuple[float, float]:
    """Relative differences of loss and gradient between a device and the CPU."""
    torch.manual_seed(0)
    here, of_here = gradient_of(name, torch.device("cpu"))
    torch.manual_seed(0)
    there, of_there = gradient_of(name, device)
    return abs(there - here) / abs(here), float((of_there - of_here).norm() / of_here.norm())


def step_time(name: str, device: torch.device, pairs: int | None, steps: int, precision: str,
              compiled: bool) -> tuple[float, float]:
    """Milliseconds of a step, and the most MB that torch held on the device (0 on a CPU)."""
    config, on_card = presets.config_of(name), device.type == "cuda"
    inputs, split = presets.made_up(name, pairs or config.settings.batch_size)
    model = build_model(config, inputs).train().to(device)
    objective, settings = build_objective(config.objective), config.settings
    optimizer = build_optimizer(model, settings)
    if compiled:
        model.encode_images = torch.compile(model.encode_images)
        model.encode_texts = torch.compile(model.encode_texts)
    if on_card:
        torch.cuda.reset_peak_memory_stats(device)
    taken, texts = [], np.arange(split.n_texts)
    views, pair_batch = np.zeros(split.n_texts, np.int64), split.pairs_on(torch.device(device))
    with float32_products(device):
        for number in range(WARM + steps):
            start = time.perf_counter()
            batch = pair_batch(texts, views)
            loss, _ = objective(forward(model, batch, precision), batch, split)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            clip_grad_norm_(model.parameters(), settings.clip_norm)
            optimizer.step()
            if on_card:
                torch.cuda.synchronize(device)
            if number >= WARM:
                taken.append(1000 * (time.perf_counter() - start))
    memory = torch.cuda.max_memory_allocated(device) / 1e6 if on_card else 0.0
    return statistics.median(taken), memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pairs", type=int, help="of a step; default the preset's batch")
    parser.add_argument("--steps", type=int, default=20, help="timed")
    parser.add_argument("--presets", nargs="+", choices=presets.preset_tables(), metavar="NAME")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    device, records = choose_device(given.device), []
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    for name in given.presets or presets.FEW:
        loss, gradient = values(name, device)
        for precision in ("float32", "bfloat16"):
            for compiled in (False, True):
                taken, memory = step_time(name, device, given.pairs, given.steps, precision,
                                          compiled)
                records.append((card, torch.__version__, name, loss, gradient, precision, compiled,
                                round(taken, 2), round(memory)))
                print(f"{card}: {name:22} {precision}{' compiled' * compiled}: {taken:.2f} ms a "
                      f"step, {memory:.0f} MB; from the CPU's loss {loss:.1e}, gradient "
                      f"{gradient:.1e}", flush=True)
    table = pd.DataFrame(records, columns=[
        "card", "torch", "preset", "loss_differs", "gradient_differs", "precision", "compiled",
        "step_milliseconds", "memory_mb"])
    if given.save:
        write_atomic(project_root() / "figures" / "common" / "gpu.csv",
                     table.to_csv(index=False).encode())


if __name__ == "__main__":
    main()
