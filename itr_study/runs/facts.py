"""What a run was computed with: device, instructions, versions, commit. Rows state it; ids do not.

A run that is stopped and goes on elsewhere was computed in several sittings; its facts state all.
"""

import platform
import subprocess
from functools import cache
from typing import Any

import numpy as np
import torch

import itr_study
from itr_study.arithmetic import arithmetic, instructions
from itr_study.features.encoded import EncodedData
from itr_study.files.atomic import read_json, write_json
from itr_study.files.paths import project_root
from itr_study.runs.config import RunConfig
from itr_study.training.checkpoints import Checkpoints
from itr_study.training.devices import matmul_on

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
