"""Sentence vectors of the texts of a data set, through the cache; what is fitted is kept too."""

from pathlib import Path

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.encoders.base import TextEncoder
from itr_study.features.cache import CacheKey, cached, sole_builder
from itr_study.features.images import cut
from itr_study.features.parallel import cores
from itr_study.features.whole import all_texts, from_whole
from itr_study.files.atomic import read_json, sha256_file, write_atomic, write_json

BLOCK = 1024  # texts a block: an encoder sorts them by length within it


def dataset_sentences(dataset: RetrievalDataset, encoder: TextEncoder,
                      folder: Path) -> dict[str, np.ndarray]:
    """Vectors (T, D) float32 of each split; the encoder is fitted on the training texts."""
    return cut(text_rows(dataset, encoder, folder),
               {name: len(split.texts) for name, split in dataset.splits.items()})


def text_rows(dataset: RetrievalDataset, encoder: TextEncoder, folder: Path) -> np.ndarray:
    """Vectors (T, D) float32 of all splits, one after the other."""
    texts = [text for split in dataset.splits.values() for text in split.texts]
    key = CacheKey(dataset.name, dataset.content, encoder.name, encoder.version,
                   encoder.settings)
    fitted = fit_once(key, encoder, list(dataset.splits["train"].texts), folder)

    def encode(start: int, stop: int) -> np.ndarray:
        return encoder.encode(texts[start:stop])

    # One that is fitted on fewer training texts says something else of every text.
    compute = encode if fitted or dataset.part_of is None else from_whole(
        dataset, all_texts, lambda whole: text_rows(whole, encoder, folder))
    return cached(key, len(texts), compute, folder, dtype="float32", block=BLOCK,
                  workers=workers_of(encoder))


def workers_of(encoder: TextEncoder) -> int:
    """Threads that encode texts side by side."""
    return cores() if encoder.threaded else 1


def fit_once(key: CacheKey, encoder: TextEncoder, texts: list[str], folder: Path) -> bool:
    """Fit the encoder, or load what an earlier process fitted; a damaged file is set aside.
    Returns whether anything is fitted at all."""
    from safetensors.numpy import load, save

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{key.stem}.fitted.safetensors"
    digest = path.with_suffix(".json")
    with sole_builder(path):
        if path.is_file() and digest.is_file():
            if read_json(digest) == {"sha256": sha256_file(path)}:
                encoder.load(load(path.read_bytes()))
                return True
            path.replace(path.with_suffix(".safetensors.corrupt"))
        fitted = encoder.fit(texts)
        if fitted:
            contiguous = {name: np.ascontiguousarray(a) for name, a in fitted.items()}
            write_atomic(path, save(contiguous))
            write_json(digest, {"sha256": sha256_file(path)})
        return bool(fitted)
