"""The data of a run: read and encoded once a process."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from itr_study.data import DATASETS, load_dataset
from itr_study.data.base import RetrievalDataset
from itr_study.encoders.registry import DETECTORS, IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.evaluation.measures import vectors_needed
from itr_study.features.dataset import TOKENS_VERSION, encode_dataset, encoded_key
from itr_study.features.regions import freeze
from itr_study.features.specs import image_parts, sentence_parts
from itr_study.features.texts import EncodedData
from itr_study.files.atomic import canonical_json
from itr_study.lab.runs.config import RunConfig, training_vectors

Value = TypeVar("Value")
# The last ones used, by the JSON of what they are made from.
_datasets: dict[str, RetrievalDataset] = {}
_encoded: dict[str, EncodedData] = {}
_keys: dict[str, str] = {}


def _cached(cache: dict[str, Value], key: str, make: Callable[[], Value], size: int) -> Value:
    """cache[key], made if it is not there; the oldest go when there are more than `size`."""
    if key not in cache:
        while len(cache) >= size:
            del cache[next(iter(cache))]
        cache[key] = make()
    return cache[key]


def dataset_of(config: RunConfig, root: Path | str | None = None) -> RetrievalDataset:
    """The data set of a config; read once a process.

    Args:    root: folder of the real data sets; None for generated data.
    Raises:  DataError where the data is not there or not whole.
    """
    key = canonical_json([config.dataset, config.data_options, _absolute(root)])
    return _cached(_datasets, key, size=2,
                   make=lambda: load_dataset(config.dataset, root, **config.data_options))


def encoded_data(config: RunConfig, root: Path | str | None = None,
                 device: str = "cpu") -> EncodedData:
    """The encoded data of a config: from the cache on disk, or computed now; kept in memory."""
    truths, vectors = DATASETS[config.dataset].graded_by, sorted(training_vectors(config))
    relevance = "exact" in truths or any(term.labels == "exact" for term in config.terms)
    key = canonical_json([data_part(config), _absolute(root), relevance, vectors])
    return _cached(_encoded, key, size=2, make=lambda: encode_dataset(
        dataset_of(config, root), images=config.images, tokens=config.tokens,
        sentences=config.sentences, relevance=relevance, device=device,
        label_vectors=vectors, evaluation_vectors=vectors_needed(truths)))


def _absolute(root: Path | str | None) -> str | None:
    """One text per folder, however it is given."""
    return None if root is None else str(Path(root).resolve())


def data_key(config: RunConfig, dataset: RetrievalDataset) -> str:
    """The key that the encoded data will have, without encoding anything."""
    key = canonical_json([data_part(config), dataset.fingerprint])
    return _cached(_keys, key, size=100, make=lambda: _data_key(config, dataset))


def _data_key(config: RunConfig, dataset: RetrievalDataset) -> str:
    parts = image_parts(config.images, tuple(dataset.features))
    frozen = freeze(parts)
    encoders = [TEXT_ENCODERS[name]("cpu") for name in sentence_parts(config.sentences)]
    return encoded_key(dataset, parts, frozen, config.tokens, encoders)


def data_part(config: RunConfig) -> str:
    """The fields of a config that decide which arrays are read, and the versions of the encoders
    they name, as canonical JSON."""
    differing = config.differing()
    part = {name: differing.get(name) for name in
            ("dataset", "data_options", "images", "tokens", "sentences")}
    words = set(re.split(r"[:+]", f"{config.images}+{config.tokens}+{config.sentences}"))
    encoders = IMAGE_ENCODERS | TEXT_ENCODERS | DETECTORS
    part["versions"] = {name: encoders[name].version for name in sorted(words & set(encoders))}
    if config.tokens:
        part["versions"]["tokens"] = TOKENS_VERSION
    return canonical_json(part)
