"""Data larger than memory: COCO's real shape as published region features, 33 GB in one file.

    python benchmarks/large.py FOLDER [--data DATA] [--parts start loader evaluation captions ...]

Makes FOLDER/coco once: train_ims.npy (113,287 x 36 x 2,048 float32), dev and test of 5,000 images,
five captions an image. The features are sparse: a file of holes, which takes no space and reads as
zeros, but for the first READ rows, which are random. Captions are halves of those in
DATA/*/*_caps.txt (without --data those of `scenes`), joined anew, so that their n-grams differ as
in real ones. Each part runs in a fresh process of one thread:

start       from nothing to splits that can be trained on; the first time also checks the file
loader      training batches of 128 pairs (in RAM, and from the disk) beside steps of vse_infinity
evaluation  5,000 images and 25,000 texts through an untrained vsepp: recall
steps       ten steps of a preset of each paper, all its settings its own; vectors of captions
            (MiniLM, Fisher) are zeros in sparse files, for to compute them takes an hour
measures    the evaluation again, dev first, with every measure that a run's row has: scores of
            images x texts, and half as many grades at a time
captions    vocabulary and tokens, CIDEr's counts and vectors, of 566,435 captions
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before torch is imported

import numpy as np  # noqa: E402
import presets  # noqa: E402
import torch  # noqa: E402
from _memory import peak_mb  # noqa: E402

import itr_study as itr  # noqa: E402
from itr_study.data.vocabulary import Vocabulary  # noqa: E402
from itr_study.encoders.ngrams import Ngrams  # noqa: E402
from itr_study.features.texts import EncodedData  # noqa: E402
from itr_study.lab.runs.config import build_objective  # noqa: E402
from itr_study.lab.runs.run import build_model  # noqa: E402
from itr_study.training import loop  # noqa: E402

IMAGES = {"train": 113_287, "dev": 5_000, "testall": 5_000}
REGIONS, SIZE, EACH, BATCH = 36, 2048, 5, 128
READ = 20 * BATCH  # rows with values, for batches from the disk


def captions_of(data: str | None) -> list[str]:
    """Captions to make others from."""
    if data is None:
        return list(itr.load_dataset("scenes").splits["train"].texts)
    return [line for path in sorted(Path(data).glob("*/*_caps.txt"))
            for line in path.read_text().splitlines()]


def make(folder: Path, data: str | None) -> None:
    """The three splits, unless they are there."""
    if (folder / "testall_ids.txt").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    random, given = np.random.default_rng(0), [one.split() for one in captions_of(data)]
    for split, images in IMAGES.items():
        rows = np.lib.format.open_memmap(folder / f"{split}_ims.npy", "w+", np.float32,
                                         (images, REGIONS, SIZE))  # sparse: nothing is written
        if split == "train":
            for row in range(READ):
                rows[row] = random.standard_normal((REGIONS, SIZE), np.float32)
            rows.flush()
        chosen = random.integers(len(given), size=(images * EACH, 2))
        (folder / f"{split}_caps.txt").write_text("".join(
            " ".join(given[a][:len(given[a]) // 2] + given[b][len(given[b]) // 2:]) + "\n"
            for a, b in chosen.tolist()))
        ids = np.repeat(random.permutation(images) + 1_000_000 * list(IMAGES).index(split), EACH)
        (folder / f"{split}_ids.txt").write_text("".join(f"{image}\n" for image in ids.tolist()))


def timed(what: str, begun: float) -> None:
    """Print CPU seconds since `begun`, which others on the machine do not change, and memory."""
    spent = time.process_time() - begun
    print(f"{what:62} {spent:7.1f} s, at most {peak_mb():6.0f} MB", flush=True)


def encoded(root: Path) -> EncodedData:
    return itr.encode_dataset(itr.load_dataset("coco", root), tokens="words")


def start(root: Path) -> None:
    """Run by `main` at the beginning and at the end: the first time checks the file."""
    begun = time.process_time()
    dataset = itr.load_dataset("coco", root)
    timed("start: load_dataset", begun)
    data = itr.encode_dataset(dataset, tokens="words")
    timed(f"start: and encode_dataset, {data.splits['train'].n_texts:,} captions", begun)


def loader(root: Path) -> None:
    data, random = encoded(root), np.random.default_rng(0)
    train = data.splits["train"]

    def per_second(batches: list[np.ndarray]) -> float:
        taken = []
        for texts in batches:
            begun = time.perf_counter()
            train.pair_batch(texts)
            taken.append(time.perf_counter() - begun)
        return 1 / statistics.mean(taken)

    with open(root / "coco" / "train_ims.npy", "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    written = random.permutation(READ).reshape(-1, BATCH) * EACH
    print(f"loader: {per_second(list(written)):.1f} batches a second from the disk, "
          f"{per_second(list(written)):.1f} from the system's cache", flush=True)
    anywhere = [random.integers(train.n_texts, size=BATCH) for _ in range(100)]
    print(f"loader: {per_second(anywhere):.1f} batches a second from all of the sparse file")
    step = presets.Step("listwise+vse_infinity", BATCH)
    step.take()
    begun = time.process_time()
    for _ in range(5):
        step.take()
    print(f"loader: {5 / (time.process_time() - begun):.2f} steps of vse_infinity a second, at "
          f"most {peak_mb():.0f} MB", flush=True)


def evaluation(root: Path) -> None:
    data, begun = encoded(root), time.process_time()
    model = itr.MODELS["vsepp"](data.inputs, size=1024)
    before = peak_mb()
    itr.evaluate(model, data.splits["test"])
    timed(f"evaluation: recall ({before:.0f} MB before)", begun)


def zeros(path: Path, rows: int, width: int) -> np.ndarray:
    """Vectors of the captions of a split, in a sparse file."""
    return np.lib.format.open_memmap(path, "w+", np.float32, (rows, width))


def steps(root: Path) -> None:
    """Through `fit`, which a user's Ctrl-C ends in the same way after a save."""
    dataset = itr.load_dataset("coco", root)
    for name in ("topk", "listwise", "bcls", "dvse"):
        config, taken, step = presets.preset(name, "coco", "given"), [], loop.take_step
        data = itr.encode_dataset(dataset, tokens=config.tokens)
        for split in data.splits.values():
            split.label_vectors = {"minilm": zeros(root / f"{split.name}_384.npy", split.n_texts,
                                                   presets.LABELS)}
            if config.sentences:
                split.sentences = zeros(root / f"{split.name}_6000.npy", split.n_texts, 6000)
        inputs = replace(data.inputs, sentence_size=6000 if config.sentences else 0)

        def ten(*given, taken=taken, step=step):
            if len(taken) == 10:
                raise KeyboardInterrupt
            logged = step(*given)
            taken.append(logged)
            return logged

        loop.take_step, begun = ten, time.process_time()
        try:
            loop.fit(build_model(config, inputs), build_objective(config.objective), data,
                     config.settings)
        except KeyboardInterrupt:
            timed(f"steps: {len(taken)} of {name}", begun)
        finally:
            loop.take_step = step


def measures(root: Path) -> None:
    data, random = encoded(root), np.random.default_rng(0)
    splits = {name: data.splits[name] for name in ("dev", "test")}
    model, begun = itr.MODELS["vsepp"](data.inputs, size=1024), time.process_time()
    grams = Ngrams().fit((root / "coco" / "dev_caps.txt").read_text().splitlines(),
                         splits["dev"].image_of_text)
    for name, split in splits.items():
        texts = (root / "coco" / f"{name.replace('st', 'stall')}_caps.txt").read_text()
        vectors = random.standard_normal((split.n_texts, 384), np.float32)
        split.label_vectors = {"minilm": vectors, "cider": grams.encode(texts.splitlines())}
    bank = itr.evaluate(model, splits["dev"], measures_of="coco")
    itr.evaluate(model, splits["test"], measures_of="coco", bank=bank)
    timed("measures: all of dev and test", begun)


def captions(root: Path) -> None:
    texts = (root / "coco" / "train_caps.txt").read_text().splitlines()
    owners = np.repeat(np.arange(len(texts) // EACH), EACH)
    begun = time.process_time()
    vocabulary = Vocabulary.fit(texts, min_count=2)
    timed(f"captions: vocabulary of {len(texts):,}: {len(vocabulary):,} words", begun)
    grams = Ngrams().fit(texts, owners)
    count = sum(len(keys) - 1 for keys, _ in grams.image_counts)
    timed(f"captions: and CIDEr's counts of {count:,} n-grams", begun)
    begun = time.process_time()
    grams.encode(texts)
    timed("captions: CIDEr's vectors, where a loss reads them", begun)


PARTS = {"start": start, "loader": loader, "evaluation": evaluation, "captions": captions,
         "steps": steps, "measures": measures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", help="folder of captions")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--only", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        torch.set_num_threads(1)
        PARTS[given.only](given.folder)
        return
    make(given.folder / "coco", given.data)
    for part in given.parts + ["start"] * ("start" in given.parts):
        subprocess.run([sys.executable, __file__, str(given.folder), "--only", part], check=True)


if __name__ == "__main__":
    main()
