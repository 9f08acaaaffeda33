"""Base configs of each data set, frozen in the files beside this one, and their learning rates."""

import tomllib
from pathlib import Path
from typing import Any

from itr_study.checks import check_choice
from itr_study.runs.config import RunConfig

BASES = Path(__file__).parent


def base(dataset: str, name: str, **changes: Any) -> RunConfig:
    """The frozen base config of a data set, `[name]` of <dataset>.toml, with changes.

    Args:    changes: as in `RunConfig.with_`.
    """
    path = BASES / f"{dataset}.toml"
    known = sorted(path.stem for path in BASES.glob("*.toml"))
    check_choice("dataset with a base config", dataset, known)
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    check_choice(f"base config of {dataset}", name, tables)
    return RunConfig.model_validate({"dataset": dataset} | tables[name]).with_(**changes)


def frozen_rates(dataset: str) -> dict[str, dict[str, float]]:
    """Learning rate by setting and loss, chosen on dev from the three of `rate_arms`.

    Raises:  ValueError where nobody has chosen any.
    """
    tables = tomllib.loads((BASES / f"{dataset}.toml").read_text(encoding="utf-8"))
    if "rates" not in tables:
        raise ValueError(f"nobody has searched the learning rates of {dataset}: {dataset}.toml in "
                         f"{BASES.name}/ has no table [rates]; run this on scenes or flickr8k")
    return tables["rates"]
