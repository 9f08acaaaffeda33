"""The data of a run: read and encoded once a process."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from itr_study.data import DATASETS, load_dataset
from itr_study.data.base import RetrievalDataset
from itr_study.encoders import DETECTORS, IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.evaluation.measures import vectors_needed
from itr_study.features.dataset import TOKENS_VERSION, encode_dataset, encoded_key
from itr_study.features.regions import freeze
from itr_study.features.specs import image_parts, sentence_encoders
from itr_study.features.texts import EncodedData
from itr_study.files.atomic import canonical_json
from itr_study.lab.runs.config import RunConfig, training_vectors

Value = TypeVar("Value")
# The last ones used, by the JSON of what they are made from.
_datasets: dict[str, RetrievalDataset] = {}
_encoded: dict[str, EncodedData] = {}
_keys: dict[str, str] = {}


def _cached(cache: dict[str, Value], size: int, made_from: list,
            make: Callable[[], Value]) -> Value:
    """What the cache has of these values, else made; of more than `size` the oldest go."""
    key = canonical_json(made_from)
    if key not in cache:
        while len(cache) >= size:
            del cache[next(iter(cache))]
        cache[key] = make()
    return cache[key]


def absolute(root: Path | str | None) -> str | None:
    """One text per folder, however it is given."""
    return None if root is None else str(Path(root).resolve())


def dataset_of(config: RunConfig, root: Path | str | None = None) -> RetrievalDataset:
    """Read the data set of a config; root: of the real data sets, None for generated data."""
    return _cached(_datasets, 2, [config.dataset, config.data_options, absolute(root)],
                   lambda: load_dataset(config.dataset, root, **config.data_options))


def encoded_data(config: RunConfig, root: Path | str | None = None,
                 device: str = "cpu") -> EncodedData:
    """Encode the data of a config, or read it from the cache on disk."""
    truths, vectors = DATASETS[config.dataset].graded_by, sorted(training_vectors(config))
    relevance = "exact" in truths or any(term.labels == "exact" for term in config.terms)
    made_from = [data_part(config), absolute(root), relevance, vectors]
    return _cached(_encoded, 2, made_from, lambda: encode_dataset(
        dataset_of(config, root), images=config.images, tokens=config.tokens,
        sentences=config.sentences, relevance=relevance, device=device,
        label_vectors=vectors, evaluation_vectors=vectors_needed(truths)))


def data_key(config: RunConfig, dataset: RetrievalDataset) -> str:
    """The key that the encoded data will have, without encoding anything."""
    def key() -> str:
        parts = image_parts(config.images, tuple(dataset.features))
        return encoded_key(dataset, parts, freeze(parts), config.tokens,
                           sentence_encoders(config.sentences))

    return _cached(_keys, 100, [data_part(config), dataset.fingerprint], key)


def data_part(config: RunConfig) -> str:
    """Name which arrays a config reads, and the versions of their encoders, as canonical JSON."""
    differing = config.differing()
    part = {name: differing.get(name) for name in
            ("dataset", "data_options", "images", "tokens", "sentences")}
    words = set(re.split(r"[:+]", f"{config.images}+{config.tokens}+{config.sentences}"))
    encoders = IMAGE_ENCODERS | TEXT_ENCODERS | DETECTORS
    part["versions"] = {name: encoders[name].version for name in sorted(words & set(encoders))}
    if config.tokens:
        part["versions"]["tokens"] = TOKENS_VERSION
    return canonical_json(part)
