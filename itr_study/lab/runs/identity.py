"""Compute a run's id: a hash of everything that its numbers depend on.

It needs the data's fingerprint and the key of its encoded form; on a machine without the data
(rows serve there too) both are read from `evidence/<dataset>/data.json`, see `remembered`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from itr_study.data import DATASETS
from itr_study.evaluation import evaluate
from itr_study.features.texts import LABEL_ENCODERS
from itr_study.files.atomic import canonical_json, read_json, sha256_file, write_json
from itr_study.files.paths import evidence_folder
from itr_study.lab.runs.config import RunConfig, training_vectors
from itr_study.lab.runs.data import data_key, data_part, dataset_of
from itr_study.lab.runs.table import restore
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from itr_study.training import loop


@dataclass(frozen=True)
class Run:
    """A config and its id, made once by `identify` and passed on.

    id: 16 hex digits; data: fingerprint of the data set; encoded: key of its encoded form;
    versions: of every part used, such as {"loss:topk": 1, "loop": 1}.
    """

    config: RunConfig
    id: str
    data: str
    encoded: str
    versions: dict[str, int]


def identify(config: RunConfig, root: Path | str | None = None) -> Run:
    """Compute the id of a config's run, without encoding or training anything.

    Args:    root: folder of the real data sets; where it is None, what is published of runs on the
             same data says what identifies it.
    Raises:  DataError where the data is not there and no runs on it are published.
    """
    versions = part_versions(config) | {"loop": loop.VERSION, "evaluation": evaluate.VERSION}
    known = None
    if root is None and not DATASETS[config.dataset].generated:
        known = remembered(config.dataset).get(digest(data_part(config)))
    if known is None:
        dataset = dataset_of(config, root)
        known = {"data": dataset.fingerprint, "encoded": data_key(config, dataset)}
    run_id = hash_run(config, known["data"], known["encoded"], versions)
    return Run(config, run_id, known["data"], known["encoded"], versions)


def part_versions(config: RunConfig) -> dict[str, int]:
    """Version of each part that a config uses, and a checksum of each file of label vectors."""
    losses = LOSSES | OUTPUT_LOSSES
    versions = {f"model:{config.model}": MODELS[config.model].version}
    versions |= {f"loss:{term.loss}": losses[term.loss].version for term in config.terms}
    versions |= {f"labels:{term.labels}": RELEVANCE[term.labels].version for term in config.terms}
    versions |= {f"{folder}/{path.name}": int(sha256_file(path)[:8], 16)
                 for term in config.terms if (folder := term.label_arguments.get("folder"))
                 for what in RELEVANCE[term.labels].reads
                 if (path := Path(str(folder)).expanduser() / f"train_{what}.npy").is_file()}
    return versions | {f"described:{name}": LABEL_ENCODERS[name].version
                       for name in sorted(training_vectors(config))}


def hash_run(config: RunConfig, data: str, encoded: str, versions: dict[str, int]) -> str:
    """Hash what a run's numbers depend on, as in the fields of `Run`, to 16 hex digits."""
    return digest(canonical_json({"config": config.differing(), "data": data, "encoded": encoded,
                                  "versions": versions}))


def remembered(dataset: str) -> dict[str, dict[str, str]]:
    """Read a data set's `data.json`: digest of a data part -> "data", "encoded", and the "part"."""
    path = evidence_folder() / dataset / "data.json"
    try:
        return read_json(path) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{path} is no JSON; {restore(path)}") from error


def remember(run: Run) -> None:
    """Write into `data.json` what identifies the data of a run; the caller holds the lock."""
    part, before = data_part(run.config), remembered(run.config.dataset)
    entry = {digest(part): {"data": run.data, "encoded": run.encoded, "part": part}}
    if before | entry != before:
        write_json(evidence_folder() / run.config.dataset / "data.json", before | entry)


def digest(text: str) -> str:
    """16 hex digits of a text's sha256: what ids and keys are made of."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
