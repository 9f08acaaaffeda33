"""What the second edition of an evaluation adds to a run: CPU seconds, and memory at the peak.

    python benchmarks/edition.py [--images 1000 --texts 5000 --size 256]

Evaluates dev and test splits of this size (random codes and relevance by two sources, as Flickr8k
has), once with the measures of edition 1 alone and once with all of them, in a fresh process each
on one thread: the relevance of the first ten, hubness, three re-rankers and FR with a bank.
"""

import argparse
import os
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402
from torch.nn.functional import normalize  # noqa: E402

from itr_study.data.batches import EncodedSplit  # noqa: E402
from itr_study.evaluation import evaluate as evaluation  # noqa: E402
from itr_study.evaluation.measures import EDITION, MEASURES, truths  # noqa: E402
from itr_study.metrics import GRADED_METRICS  # noqa: E402
from itr_study.models.base import ModelOutput  # noqa: E402

LABELS = 384  # numbers of a label vector


class Given(torch.nn.Module):
    """A model whose codes are its inputs."""

    def encode_images(self, batch):
        return normalize(batch.regions.mean(dim=1), dim=1)

    def encode_texts(self, batch):
        return normalize(batch.sentences, dim=1)

    def score(self, images, texts):
        return ModelOutput(scores=images @ texts.T)


def split(name: str, images: int, texts: int, size: int) -> EncodedSplit:
    """Images as random codes, texts near them, with random relevance and label vectors."""
    random = np.random.default_rng(len(name))
    owner = np.sort(np.arange(texts) % images)
    codes = random.standard_normal((images, size), dtype=np.float32)
    relevance = random.random((images, texts), dtype=np.float32) / 2
    relevance[owner, np.arange(texts)] = 1
    labels = random.standard_normal((texts, LABELS), dtype=np.float32)
    labels /= np.linalg.norm(labels, axis=1, keepdims=True)
    noise = 3 * random.standard_normal((texts, size), dtype=np.float32)
    return EncodedSplit(name, owner, codes[:, None, None], sentences=codes[owner] + noise,
                        relevance=relevance, label_vectors={"minilm": labels})


def only_the_first() -> None:
    """Leave only the measures of edition 1."""
    for name in [name for name, measure in MEASURES.items() if measure.edition > 1]:
        del MEASURES[name]
    del GRADED_METRICS["rel10"]
    evaluation.kept_of = lambda *_: {}


def measure(edition: int, images: int, texts: int, size: int) -> None:
    """Print CPU seconds of an evaluation of dev and test, and the peak in MB; before that, on
    stderr, the seconds that rows state."""
    if edition == 1:
        only_the_first()
    dev, test = (split(name, images, texts, size) for name in ("dev", "test"))
    for each in (dev, test):
        truths(each)  # of both editions, and once a process: not counted
    model, start = Given(), time.process_time()
    first = evaluation.evaluate(model, dev, measures_of="scenes")
    bank = first if edition > 1 else None
    second = evaluation.evaluate(model, test, measures_of="scenes", bank=bank)
    spent = time.process_time() - start
    for name, seconds in sorted(second.costs.items()):
        print(f"  {name} {seconds:.2f}", file=sys.stderr)
    print(spent, peak_mb())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--size", type=int, default=256, help="numbers of a code")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.texts < given.images:
        parser.error("every image needs a text: --texts must be at least --images")
    if given.only:
        with torch.inference_mode():
            measure(given.only, given.images, given.texts, given.size)
        return
    print(f"dev and test of {given.images:,} x {given.texts:,}, two label sources, one thread:")
    results = []
    for edition in (1, EDITION):
        done = subprocess.run([sys.executable, __file__, "--only", str(edition),
                               "--images", str(given.images), "--texts", str(given.texts),
                               "--size", str(given.size)],
                              check=True, stdout=subprocess.PIPE, text=True)
        results.append([float(number) for number in done.stdout.split()])
        print(f"edition {edition}: {results[-1][0]:7.1f} s, {results[-1][1]:6.0f} MB at the peak",
              flush=True)
    print(f"it adds {results[1][0] - results[0][0]:.1f} s to a run")


if __name__ == "__main__":
    main()
