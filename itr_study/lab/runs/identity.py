"""Compute a run's id: a hash of everything that its numbers depend on.

It needs the data's fingerprint; on a machine without the data (rows serve there too) that is read
from `evidence/<dataset>/data.json`, which holds, for each way of encoding, the fingerprint of the
data and the key of its encoded form.
"""

import hashlib
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import itr_study
from itr_study.arithmetic import arithmetic, instructions
from itr_study.data import DATASETS
from itr_study.evaluation import evaluate
from itr_study.features.texts import LABEL_ENCODERS, EncodedData
from itr_study.files.atomic import canonical_json, read_json, write_json
from itr_study.files.paths import evidence_folder, project_root
from itr_study.lab.runs.config import RunConfig, training_vectors
from itr_study.lab.runs.data import data_key, data_part, dataset_of
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.relevance import RELEVANCE
from itr_study.training import loop
from itr_study.training.checkpoints import Checkpoints
from itr_study.training.devices import matmul_on

# What a run was computed with: device, instructions, versions, commit. Rows state it; ids do not.
#
# A run that is stopped and goes on elsewhere was computed in several sittings; its facts state all.

CHANGED = "+"  # behind a commit from which files differ


def computed_with(config: RunConfig, data: EncodedData, device: torch.device) -> dict[str, Any]:
    """What the bits of a run depend on beside its id."""
    return machine_facts(device) | {
        "arithmetic": arithmetic(data.features_dtype, config.settings.precision,
                                 matmul_on(device, config.settings.matmul))}


def machine_facts(device: torch.device) -> dict[str, Any]:
    """Versions, device and its instructions: recorded, never part of an id."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} {name}", "instructions": instructions(),
            "software": {"python": platform.python_version(), "torch": torch.__version__,
                         "numpy": np.__version__, "itr_study": itr_study.__version__}}


@cache
def git_commit() -> str:
    """The commit of the source, "+" where files differ from it; "" outside a repository."""
    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(project_root()), *arguments], check=True,
                              capture_output=True, text=True, timeout=20).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "itr_study")
        return git("rev-parse", "--short=12", "HEAD") + (CHANGED if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def all_sittings(checkpoints: Checkpoints, this: dict[str, Any]) -> dict[str, Any]:
    """The facts of this sitting and of those whose checkpoints it goes on from, `merged`.

    They are noted beside the checkpoints: a sitting whose checkpoint is lost may count, none is
    left out.

    Args:    this: facts of this sitting, as of `computed_with`.
    """
    path = checkpoints.folder / "sittings.json"
    before: list[Any] = []
    if checkpoints.names():
        try:
            before = read_json(path)
        except (OSError, ValueError):  # checkpoints of an older version, or a damaged file
            before = [{}]
    sittings = before if this in before else [*before, this]
    write_json(path, sittings)
    return merged([*sittings, this])


def merged(sittings: list[Any]) -> Any:
    """Facts of several sittings as one: "amx + avx2", equal to neither, where they differ."""
    if isinstance(sittings[-1], dict):
        return {name: merged([facts.get(name, "unknown") if isinstance(facts, dict) else facts
                              for facts in sittings]) for name in sittings[-1]}
    return " + ".join(dict.fromkeys(map(str, sittings)))


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
    """The run of a config.

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
    """Version of the model, losses, label sources and their descriptions that a config uses."""
    losses = LOSSES | OUTPUT_LOSSES
    versions = {f"model:{config.model}": MODELS[config.model].version}
    versions |= {f"loss:{term.loss}": losses[term.loss].version for term in config.terms}
    versions |= {f"labels:{term.labels}": RELEVANCE[term.labels].version for term in config.terms}
    return versions | {f"described:{name}": LABEL_ENCODERS[name].version
                       for name in sorted(training_vectors(config))}


def hash_run(config: RunConfig, data: str, encoded: str, versions: dict[str, int]) -> str:
    """The id of a run: sha256 of the canonical JSON of what its numbers depend on, 16 hex digits.

    Args:    as the fields of `Run`.
    """
    return digest(canonical_json({"config": config.differing(), "data": data, "encoded": encoded,
                                  "versions": versions}))


def remembered(dataset: str) -> dict[str, dict[str, str]]:
    """The content of a data set's `data.json`: digest of a data part -> fingerprint ("data"), key
    ("encoded"), and the part itself for people."""
    path = evidence_folder() / dataset / "data.json"
    try:
        return read_json(path) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{path} is no JSON; restore it: git checkout -- {path}") from error


def remember(run: Run) -> None:
    """Write into `data.json` what identifies the data of a run; the caller holds the lock."""
    part, before = data_part(run.config), remembered(run.config.dataset)
    entry = {digest(part): {"data": run.data, "encoded": run.encoded, "part": part}}
    if before | entry != before:
        write_json(evidence_folder() / run.config.dataset / "data.json", before | entry)


def digest(text: str) -> str:
    """16 hex digits of a text's sha256: what ids and keys are made of."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
