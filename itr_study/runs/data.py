"""The data of a run: read and encoded once a process."""

import re
from pathlib import Path

from itr_study.data import DATASETS, load_dataset
from itr_study.data.base import RetrievalDataset
from itr_study.encoders import IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.evaluation.measures import vectors_needed
from itr_study.features.dataset import TOKENS_VERSION, encode_dataset
from itr_study.features.encoded import EncodedData
from itr_study.files.atomic import canonical_json
from itr_study.runs.config import RunConfig, training_vectors

_datasets: dict[str, RetrievalDataset] = {}  # the last ones used, by what they are read from
_encoded: dict[str, EncodedData] = {}


def _kept(cache: dict, key: str, make, most: int):
    """cache[key], made if it is not there; the oldest goes when there are more than `most`."""
    if key not in cache:
        while len(cache) >= most:
            del cache[next(iter(cache))]
        cache[key] = make()
    return cache[key]


def dataset_of(config: RunConfig, root: Path | str | None = None) -> RetrievalDataset:
    """The data set of a config; read once a process.

    Args:    root: folder of the real data sets; None for generated data.
    """
    key = canonical_json([config.dataset, config.data_options, str(root)])
    return _kept(_datasets, key, most=2,
                 make=lambda: load_dataset(config.dataset, root, **config.data_options))


def encoded_data(config: RunConfig, root: Path | str | None = None,
                 device: str = "cpu") -> EncodedData:
    """The encoded data of a config: from the cache on disk, or computed now; kept in memory."""
    truths, vectors = DATASETS[config.dataset].graded_by, sorted(training_vectors(config))
    relevance = "exact" in truths or any(term.labels == "exact" for term in config.terms)
    key = canonical_json([data_part(config), str(root), relevance, vectors])
    return _kept(_encoded, key, most=2, make=lambda: encode_dataset(
        dataset_of(config, root), images=config.images, tokens=config.tokens,
        sentences=config.sentences, relevance=relevance, device=device,
        label_vectors=vectors, evaluation_vectors=vectors_needed(truths)))


def data_part(config: RunConfig) -> str:
    """What of a config says which arrays are read, with the versions of the encoders named."""
    differing = config.differing()
    part = {name: differing.get(name) for name in
            ("dataset", "data_options", "images", "tokens", "sentences")}
    words = set(re.split(r"[:+]", f"{config.images}+{config.tokens}+{config.sentences}"))
    encoders = IMAGE_ENCODERS | TEXT_ENCODERS
    part["versions"] = {name: encoders[name].version for name in sorted(words & set(encoders))}
    if config.tokens:
        part["versions"]["tokens"] = TOKENS_VERSION
    return canonical_json(part)
