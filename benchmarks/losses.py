"""Time and memory of the listwise and Kendall losses, against straightforward forms kept here.

    python benchmarks/losses.py [--sizes 128 256 512 --repeats 3] [--large 4096]

Forward and backward of both directions in float32, one thread: CPU seconds, the least of the
repeats, and peak memory beyond what was there, in a fresh process for each. Both forms must give
equal values and gradients. --large adds the package's forms alone at one more size.
"""

import argparse
import os
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402
from torch import Tensor  # noqa: E402

from itr_study.losses import LOSSES  # noqa: E402

TEMPERATURE, RELAXATION, STRIDE = 0.01, 0.2, 0.1
EDGES = torch.arange(1, 19) * STRIDE - 1
NAMES = ("smooth_ndcg", "kendall", "kendall_window", "kendall_window_soft")
GOALS = {"smooth_ndcg": "25, then 100", "kendall": "20, then 50", "kendall_window": "2.5",
         "kendall_window_soft": "none"}


def broadcast_ndcg(scores: Tensor, relevance: Tensor) -> Tensor:
    """Smooth-NDCG with all (I, T, T) differences at once."""
    ahead = ((scores[:, None, :] - scores[:, :, None]) / TEMPERATURE).sigmoid()
    rank = 1 + ahead.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0).sum(dim=2)
    gain = 2**relevance - 1
    place = torch.arange(1, scores.shape[1] + 1)
    ideal = (gain.sort(dim=1, descending=True).values / torch.log2(1 + place)).sum(dim=1)
    return (1 - (gain / torch.log2(1 + rank)).sum(dim=1) / ideal).mean()


def broadcast_kendall(scores: Tensor, relevance: Tensor) -> Tensor:
    """Kendall with the hinge and the mask of all (I, T, T) pairs."""
    pairs = relevance[:, :, None] - relevance[:, None, :] >= RELAXATION - 1e-6
    return ((scores[:, None, :] - scores[:, :, None]).relu() * pairs).sum() / pairs.sum()


def window_tensor(scores: Tensor, relevance: Tensor) -> Tensor:
    """SW-HS with a mask (I, T, M) for each side."""
    negative, positive = window_masks(relevance)
    largest = scores[:, :, None].masked_fill(~negative, -torch.inf).amax(dim=1)
    least = scores[:, :, None].masked_fill(~positive, torch.inf).amin(dim=1)
    return (largest - least).relu().mean()


def window_pairs(scores: Tensor, relevance: Tensor) -> Tensor:
    """SW with all (I, T, T) pairs, times the windows that each lies in."""
    negative, positive = (mask.float() for mask in window_masks(relevance))
    windows = positive @ negative.transpose(1, 2)  # (I, T, T)
    return ((scores[:, None, :] - scores[:, :, None]).relu() * windows).sum() / windows.sum()


def window_masks(relevance: Tensor) -> tuple[Tensor, Tensor]:
    """(I, T, M) each: negative, positive."""
    labels = relevance[:, :, None]
    return labels < EDGES - 1e-6, (labels >= EDGES + RELAXATION - 1e-6) | (labels == 1)


PLAIN = {"smooth_ndcg": broadcast_ndcg, "kendall": broadcast_kendall,
         "kendall_window": window_tensor, "kendall_window_soft": window_pairs}


def run(name: str, form: str, scores: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Value and gradient."""
    leaf = scores.clone().requires_grad_()
    if form == "plain":
        value = PLAIN[name](leaf, relevance) + PLAIN[name](leaf.T, relevance.T)
    else:
        arguments = {"hard": False} if name.endswith("_soft") else {}
        value = LOSSES[name.removesuffix("_soft")](**arguments)(leaf, relevance)
    value.backward()
    return value.detach(), leaf.grad


def batch(size: int) -> tuple[Tensor, Tensor]:
    """Scores spread like a model's, labels of all kinds, a match in every row."""
    generator = torch.Generator().manual_seed(0)
    scores = (0.15 * torch.randn(size, size, generator=generator)).clamp(-1, 1)
    relevance = torch.rand(size, size, generator=generator).clamp(max=0.99)
    return scores, relevance.fill_diagonal_(1)


def measure(name: str, form: str, size: int, repeats: int) -> None:
    """Print least CPU seconds and peak MB beyond the scores and labels."""
    torch.set_num_threads(1)
    run(name, form, *batch(16))  # warm up
    scores, relevance = batch(size)
    before, seconds = peak_mb(), []
    for _ in range(repeats):
        begin = time.process_time()
        run(name, form, scores, relevance)
        seconds.append(time.process_time() - begin)
    print(min(seconds), peak_mb() - before)


def measured(name: str, form: str, size: int, repeats: int) -> list[float]:
    """Seconds and MB, from a fresh process."""
    command = [sys.executable, __file__, "--only", name, form, "--sizes", str(size),
               "--repeats", str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(x) for x in done.stdout.split()]


def check_equal(name: str) -> None:
    """Exit unless both forms agree on a batch of 128."""
    (value, gradient), (plain, expected) = (run(name, f, *batch(128)) for f in ("ours", "plain"))
    apart = (gradient - expected).abs().max() / expected.abs().max()
    if abs(value - plain) > 1e-5 * abs(plain) or apart > 1e-4:
        sys.exit(f"{name}: the forms disagree: {value} and {plain}, gradients by {apart:.1g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        measure(*given.only, given.sizes[0], given.repeats)
        return
    for name in given.names:
        check_equal(name)
        print(f"{name} (goal at 512: {GOALS[name]} times)")
        for size in given.sizes:
            slow = measured(name, "plain", size, 1 if size > 256 else given.repeats)
            fast = measured(name, "ours", size, given.repeats)
            print(f"  batch {size}: straightforward {slow[0]:.4f} s, {slow[1]:.0f} MB; "
                  f"here {fast[0]:.4f} s, {fast[1]:.0f} MB; ratio {slow[0] / fast[0]:.1f}",
                  flush=True)
        if given.large:
            fast = measured(name, "ours", given.large, 1)
            print(f"  batch {given.large}: {fast[0]:.1f} s, {fast[1]:.0f} MB here")


if __name__ == "__main__":
    main()
