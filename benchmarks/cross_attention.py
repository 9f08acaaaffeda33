"""Time and memory of models whose words look at regions, against a loop over texts kept here.

    python benchmarks/cross_attention.py [--models saf sgr --batch 64 --regions 36]
    python benchmarks/cross_attention.py --full [--save]

A training step (encoders, scores, hinge, gradient, update) and the scores of 200 images with 1,000
texts, at the size of the study: embedding 256, similarity vectors of 64, 36 regions (its detector's
boxes, and the papers'), but three steps of SGR's graph, the papers', where it takes one. CPU
seconds of one thread, the least of the repeats, and peak memory beyond what was there, in a fresh
process for each. Both forms must give equal values and gradients. The loop is how published code
has it: one text at a time, with all images.

With --full instead: the scores of 1,000 images with 5,000 texts, ours alone, on all cores, as
evaluation computes them: seconds by the clock, and the peak of all memory of the process, features
and codes included. Goal: 120 s and 2 GB on two cores. With --save they are kept, with what they
were measured on, in evidence/common/scoring.csv.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

if "--full" not in sys.argv:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # before torch is imported

import pandas as pd
import torch
from _memory import peak_mb
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize

from itr_study.data.batches import Batch, InputSpec
from itr_study.evaluation.evaluate import score
from itr_study.files.atomic import canonical_json, write_atomic
from itr_study.lab.runs.run import git_commit, machine_facts
from itr_study.lab.studies.timing import times_file
from itr_study.losses import LOSSES
from itr_study.models import MODELS
from itr_study.models.cross_attention import LEAK, CrossAttention

NAMES = ("saf", "sgr")
FEATURES, VOCABULARY, SIZE, SIMILARITY = 1280, 4500, 256, 64
SCORING = ("model", "images", "texts", "regions", "threads", "wall_seconds", "cpu_seconds",
           "peak_mb", "memory_mb", "device", "instructions", "software", "commit")
WHOLE = (1000, 5000)  # images and texts of a test split, as Flickr8k and Flickr30k have it


def looped(model: CrossAttention, images: tuple, texts: tuple) -> Tensor:
    """Scores (I, T), text by text, each with its own words alone; batch norm by running values."""
    (regions, _, wholes), (words, exists, text_wholes) = images, texts
    columns = []
    for vectors, there, whole in zip(words, exists, text_wholes, strict=True):
        own = vectors[:there.sum()].expand(len(regions), -1, -1).contiguous()  # (I, W, D)
        cosines = leaky_relu(regions @ own.transpose(1, 2), LEAK)
        logits = normalize(cosines, dim=2).transpose(1, 2).contiguous()  # (I, W, R)
        weights = (model.pair.similarities.scale * logits).softmax(dim=2)
        seen = normalize(weights @ regions, dim=2)
        local = normalize(model.pair.similarities.words((seen - own).square()), dim=2)
        of_wholes = (wholes - whole).square()
        first = normalize(model.pair.similarities.wholes(of_wholes), dim=1)
        nodes = torch.cat([first.unsqueeze(1), local], dim=1).unsqueeze(1)  # (I, 1, 1 + W, S)
        columns.append(model.read(nodes, torch.ones(nodes.shape[1:3], dtype=torch.bool)))
    return torch.cat(columns, dim=1)


def ours(model: CrossAttention, images: tuple, texts: tuple) -> Tensor:
    """The package's scores."""
    return model.score(images, texts).scores


FORMS = {"loop": looped, "ours": ours}


def build(name: str) -> CrossAttention:
    torch.manual_seed(0)
    return MODELS[name](InputSpec(FEATURES, VOCABULARY), size=SIZE, similarity=SIMILARITY)


def batch(images: int, texts: int, regions: int, alike: bool) -> Batch:
    """Random features and words: texts of 5 to 19 words, 11 in the mean as in Flickr8k, or all of
    11, as a batch of training has captions of like length."""
    generator = torch.Generator().manual_seed(0)
    lengths = (11 + 3 * torch.randn(texts, generator=generator)).round().clamp(5, 19).long()
    lengths = torch.full_like(lengths, 11) if alike else lengths
    tokens = torch.randint(2, VOCABULARY, (texts, int(lengths.max())), generator=generator)
    tokens *= torch.arange(tokens.shape[1]) < lengths[:, None]
    return Batch(torch.arange(images), torch.arange(texts), torch.arange(texts) % images,
                 regions=torch.randn(images, regions, FEATURES, generator=generator),
                 region_mask=torch.ones(images, regions, dtype=torch.bool), tokens=tokens,
                 lengths=lengths)


def encoded(model: CrossAttention, given: Batch) -> tuple[tuple, tuple]:
    with torch.no_grad():
        return tuple(model.encode_images(given)), tuple(model.encode_texts(given))


def check_equal(name: str, regions: int) -> None:
    """Exit unless both forms agree in value and gradient."""
    results = []
    for form in FORMS.values():
        model, given = build(name).eval(), batch(6, 9, regions, False)
        scores = form(model, model.encode_images(given), model.encode_texts(given))
        scores.square().sum().backward()
        results.append([scores.detach(), *(p.grad for p in model.parameters())])
    for a, b in zip(*results, strict=True):
        if (a - b).abs().max() > 1e-5 * b.abs().max().clamp(min=1):
            sys.exit(f"{name}: the forms disagree by {(a - b).abs().max():.1g}")


def step_seconds(name: str, form: str, size: int, regions: int) -> float:
    """CPU seconds of one step of training."""
    model, given = build(name).train(), batch(size, size, regions, True)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    loss, best = LOSSES["triplet_hardest"](), float("inf")
    for _ in range(4):
        start = time.process_time()
        scores = FORMS[form](model, model.encode_images(given), model.encode_texts(given))
        optimizer.zero_grad()
        loss(scores, given.match.float()).backward()
        optimizer.step()
        best = min(best, time.process_time() - start)
    return best


def score_seconds(name: str, form: str, images: int, texts: int, regions: int) -> float:
    """CPU seconds of the scores of all pairs."""
    model = build(name).eval()
    codes = encoded(model, batch(images, texts, regions, False))
    start = time.process_time()
    with torch.no_grad():
        FORMS[form](model, *codes)
    return time.process_time() - start


def measure(name: str, form: str, what: str, size: int, regions: int) -> None:
    """Print seconds and peak MB."""
    torch.set_num_threads(1)
    before = peak_mb()
    seconds = (step_seconds(name, form, size, regions) if what == "step" else
               score_seconds(name, form, 200, 1000, regions))
    print(seconds, peak_mb() - before)


def measured(*what: object) -> list[float]:
    """Seconds and MB, from a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--only", *map(str, what)], check=True,
                          capture_output=True, text=True)
    return [float(x) for x in done.stdout.split()]


def compare(names: Sequence[str], size: int, regions: int) -> None:
    """Print both forms' seconds and MB, of a step and of scores."""
    for name in names:
        check_equal(name, regions)
        for what, goal in (("step", 0.5), ("score", 120 * 200_000 / 5_000_000)):
            slow, fast = (measured(name, form, what, size, regions) for form in ("loop", "ours"))
            print(f"{name}, {what} (goal {goal:.1f} s): loop {slow[0]:.2f} s, {slow[1]:.0f} MB; "
                  f"here {fast[0]:.2f} s, {fast[1]:.0f} MB; ratio {slow[0] / fast[0]:.1f}",
                  flush=True)


def whole(name: str, images: int, texts: int, regions: int) -> dict[str, object]:
    """What the scores of all pairs take, as evaluation computes them, with its progress: a row."""
    model = build(name).eval()
    codes = encoded(model, batch(images, texts, regions, False))
    before, start, cpu = peak_mb(), time.monotonic(), time.process_time()
    score(model, *codes)
    taken = {"wall_seconds": time.monotonic() - start, "cpu_seconds": time.process_time() - cpu,
             "peak_mb": peak_mb(), "memory_mb": peak_mb() - before}
    facts = machine_facts(torch.device("cpu"))
    return {"model": name, "images": images, "texts": texts, "regions": regions,
            "threads": torch.get_num_threads(), **taken, **facts,
            "software": canonical_json(facts["software"]), "commit": git_commit()}


def full(names: Sequence[str], images: int, texts: int, regions: int) -> pd.DataFrame:
    """The table SCORING, printed too; each row from a fresh process, for a peak never falls."""
    rows = []
    for name in names:
        command = [sys.executable, __file__, "--full", "--size", str(images), str(texts),
                   "--regions", str(regions), "--one", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout))
        print("{model}, {images:,} x {texts:,}: {wall_seconds:.1f} s by the clock, "
              "{cpu_seconds:.1f} s of all cores, {threads} threads; peak {peak_mb:.0f} MB, "
              "{memory_mb:.0f} MB beyond codes and features".format(**rows[-1]), flush=True)
    return pd.DataFrame(rows, columns=list(SCORING))


def arguments() -> argparse.Namespace:
    """What was asked for; exits where it cannot be kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=NAMES)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--regions", type=int, default=36)
    parser.add_argument("--full", action="store_true", help="score a whole test split")
    parser.add_argument("--size", nargs=2, type=int, metavar=("IMAGES", "TEXTS"),
                        help="of --full, 1000 5000 unless given")
    parser.add_argument("--save", action="store_true", help="keep what --full measures")
    parser.add_argument("--only", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=NAMES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if (given.save or given.size) and not given.full:
        parser.error("--save and --size are of --full: give it, too")
    if given.save and (given.models or given.size):
        parser.error("--save keeps all models at 1,000 images and 5,000 texts: leave --models and "
                     "--size out")
    given.models, given.size = given.models or NAMES, given.size or WHOLE
    return given


def main() -> None:
    given = arguments()
    if given.only:
        measure(*given.only[:3], *map(int, given.only[3:]))
    elif given.one:
        print(json.dumps(whole(given.one, *given.size, given.regions)))
    elif given.full:
        table = full(given.models, *given.size, given.regions)
        if given.save:
            write_atomic(times_file("scoring"), table.round(1).to_csv(index=False).encode())
    else:
        compare(given.models, given.batch, given.regions)


if __name__ == "__main__":
    main()
