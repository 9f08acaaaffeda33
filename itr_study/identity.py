"""Which data a run reads, and the run's id; known without the data where rows of it are kept.

Rows are used on machines that do not have the photographs. So `figures/<dataset>/data.json`
remembers, for each way of encoding, the fingerprint of the data and the key of its encoded form.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from itr_study import evaluation, training
from itr_study.atomic import canonical_json, read_json, write_json
from itr_study.configs import RunConfig, label_needs, part_versions, run_id
from itr_study.data import load_dataset
from itr_study.data.base import RetrievalDataset
from itr_study.encoders import IMAGE_ENCODERS, TEXT_ENCODERS, EncodedData, encode_dataset
from itr_study.encoders.base import KINDS
from itr_study.encoders.dataset import TOKENS_VERSION, encoded_key
from itr_study.encoders.images import FrozenImages
from itr_study.encoders.specs import image_parts, sentence_parts
from itr_study.paths import home
from itr_study.suite import graded_truths, labels_needed

GENERATED = ("scenes",)  # made in seconds anywhere: no rows are committed, everything trains


@dataclass(frozen=True)
class Identity:
    """A run's id, and what of it is not in the config."""

    run: str
    data: str  # fingerprint of the data set
    encoded: str  # key of its encoded form
    versions: dict[str, int]  # of every part used


_datasets: dict[str, RetrievalDataset] = {}  # the last ones used, by what they are read from
_encoded: dict[str, EncodedData] = {}
_keys: dict[str, str] = {}


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
    truths, labels = graded_truths(config.dataset), sorted(label_needs(config))
    relevance = "exact" in truths or any(term.labels == "exact" for term in config.terms)
    key = canonical_json([data_part(config), str(root), relevance, labels])
    return _kept(_encoded, key, most=2, make=lambda: encode_dataset(
        dataset_of(config, root), images=config.images, tokens=config.tokens,
        sentences=config.sentences, relevance=relevance, device=device, labels=labels,
        judging=labels_needed(truths)))


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
    versions = part_versions(config) | {"loop": training.VERSION,
                                        "evaluation": evaluation.VERSION}
    known = None
    if root is None and figures is not None and config.dataset not in GENERATED:
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


def folder_lock(folder: Path) -> FileLock:
    """The lock of a folder of figures; it lies in the home, so that git never sees it."""
    name = hashlib.sha256(str(Path(folder).resolve()).encode()).hexdigest()[:16]
    (home() / "locks").mkdir(parents=True, exist_ok=True)
    return FileLock(home() / "locks" / f"{name}.lock")


def _digest(config: RunConfig) -> str:
    return hashlib.sha256(data_part(config).encode()).hexdigest()[:16]
