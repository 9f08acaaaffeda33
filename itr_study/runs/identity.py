"""A run's id; known without the data where rows of it are kept.

Rows are used on machines that do not have the photographs. So `figures/<dataset>/data.json`
remembers, for each way of encoding, the fingerprint of the data and the key of its encoded form.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from itr_study.data import DATASETS
from itr_study.data.base import RetrievalDataset
from itr_study.encoders import TEXT_ENCODERS
from itr_study.encoders.base import KINDS
from itr_study.evaluation import evaluate
from itr_study.features.dataset import encoded_key
from itr_study.features.images import FrozenImages
from itr_study.features.label_vectors import LABEL_ENCODERS
from itr_study.features.specs import image_parts, sentence_parts
from itr_study.files.atomic import canonical_json, folder_lock, read_json, write_json
from itr_study.models import MODELS
from itr_study.runs.config import RunConfig, build_objective, training_vectors
from itr_study.runs.data import _kept, data_part, dataset_of
from itr_study.training import loop


@dataclass(frozen=True)
class Identity:
    """A run's id, and what of it is not in the config."""

    run: str
    data: str  # fingerprint of the data set
    encoded: str  # key of its encoded form
    versions: dict[str, int]  # of every part used


_keys: dict[str, str] = {}


def data_key(config: RunConfig, dataset: RetrievalDataset) -> str:
    """The key that the encoded data will have, without encoding anything."""
    return _kept(_keys, canonical_json([data_part(config), dataset.fingerprint]), most=100,
                 make=lambda: _data_key(config, dataset))


def _data_key(config: RunConfig, dataset: RetrievalDataset) -> str:
    parts = image_parts(config.images, tuple(dataset.features))
    frozen = {part: FrozenImages(part) for part in parts if part.kind in KINDS}
    encoders = [TEXT_ENCODERS[name]("cpu") for name in sentence_parts(config.sentences)]
    return encoded_key(dataset, parts, frozen, config.tokens, encoders)


def identify(config: RunConfig, root: Path | str | None = None,
             figures: Path | str | None = None) -> Identity:
    """The id of a run.

    Args:    root: where the data is; without it the remembered data of `figures` is meant.
    Raises:  DataError where the data is not there and no rows of it are kept.
    """
    versions = part_versions(config) | {"loop": loop.VERSION,
                                        "evaluation": evaluate.VERSION}
    known = None
    if root is None and figures is not None and not DATASETS[config.dataset].generated:
        known = remembered(Path(figures) / config.dataset).get(_digest(config))
    if known is None:
        dataset = dataset_of(config, root)
        known = {"data": dataset.fingerprint, "encoded": data_key(config, dataset)}
    run = run_id(config, known["data"], known["encoded"], versions)
    return Identity(run, known["data"], known["encoded"], versions)


def remembered(folder: Path) -> dict[str, dict[str, str]]:
    """Digest of a data part -> fingerprint, key, and the part itself for people."""
    path = folder / "data.json"
    return read_json(path) if path.exists() else {}


def remember(config: RunConfig, identity: Identity, folder: Path) -> None:
    """Keep beside the rows what identifies the data of a run."""
    with folder_lock(folder):
        known = remembered(folder)
        entry = {"data": identity.data, "encoded": identity.encoded, "part": data_part(config)}
        if known.get(_digest(config)) != entry:
            write_json(folder / "data.json", known | {_digest(config): entry})


def _digest(config: RunConfig) -> str:
    return hashlib.sha256(data_part(config).encode()).hexdigest()[:16]


def part_versions(config: RunConfig) -> dict[str, int]:
    """Version of the model, losses and label sources that a config uses."""
    versions = {f"model:{config.model}": MODELS[config.model].version}
    versions |= build_objective(config.terms).versions
    # "described" is what label vectors were called when the first ids were made.
    return versions | {f"described:{name}": LABEL_ENCODERS[name].version
                       for name in sorted(training_vectors(config))}


def run_id(config: RunConfig, fingerprint: str, data_key: str, versions: dict[str, int]) -> str:
    """16 hex digits: sha256 of what the numbers depend on.

    Args:    fingerprint: of the data set; data_key: of its encoded form; versions: of every part.
    """
    payload = {"config": config.differing(), "data": fingerprint, "encoded": data_key,
               "versions": versions}
    return hashlib.sha256(canonical_json(payload).encode()).hexdigest()[:16]
