"""Base configs of each data set, frozen in the files beside this one, and their learning rates.

A table of <dataset>.toml is a config and, under `about`, one sentence for people, under `rates` the
learning rate of losses that its own does not suit, under `side_weights` the weight of what stands
beside such a loss; the table `rates` holds the learning rates of
each setting and, under `tried`, the grid that they are the best of. Reading the tables does not
load torch, so that the command answers a typo at once.
"""

from __future__ import annotations

import tomllib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itr_study.checks import check_choice

if TYPE_CHECKING:
    from itr_study.lab.runs.config import RunConfig

BASES = Path(__file__).parent
BESIDE = ("about", "rates", "side_weights")  # what a table holds beside its config


def datasets_with_bases() -> list[str]:
    """Names of the data sets that have base configs."""
    return sorted(path.stem for path in BASES.glob("*.toml"))


def base_tables(dataset: str) -> dict[str, dict[str, Any]]:
    """The base configs of a data set by name, as written, `about` included.

    Raises:  ValueError for a data set without any.
    """
    check_choice("dataset with a base config", dataset, datasets_with_bases())
    return {name: table for name, table in _tables(dataset).items() if name != "rates"}


def base_values(dataset: str, name: str) -> dict[str, Any]:
    """The fields of a base config. Raises: ValueError for an unknown name."""
    tables = base_tables(dataset)
    check_choice(f"base config of {dataset}", name, tables)
    return {"dataset": dataset} | {k: v for k, v in tables[name].items() if k not in BESIDE}


def base(dataset: str, name: str, **changes: Any) -> RunConfig:
    """The frozen base config of a data set, `[name]` of <dataset>.toml, with changes.

    Args:    changes: as in `RunConfig.with_`.
    """
    from itr_study.lab.runs.config import RunConfig

    return RunConfig.model_validate(base_values(dataset, name)).with_(**changes)


def own_rates(dataset: str, name: str) -> dict[str, float]:
    """Learning rate by loss of those that do not have that of a base config, `rates` of its table:
    a sum of far fewer terms may need another. Empty where all have it."""
    return base_tables(dataset)[name].get("rates", {})


def side_weights(dataset: str, name: str) -> dict[str, float]:
    """Weight by loss of the terms behind the first one of a base config, `side_weights` of its
    table, for losses of another size than that first one: the weight was set beside it, and a mean
    of five hinges is a hundredth of the sum of all. Empty where all have that of the base."""
    return base_tables(dataset)[name].get("side_weights", {})


def frozen_rates(dataset: str) -> dict[str, dict[str, float]]:
    """Learning rate by setting and loss, chosen on dev from the grid of `rate_arms`.

    Raises:  ValueError where nobody has chosen any.
    """
    return {setting: {loss: rate for loss, rate in rates.items() if loss != "tried"}
            for setting, rates in _chosen(dataset).items()}


def tried_rates(dataset: str) -> dict[str, list[float]]:
    """The grid of each setting that its frozen rates were chosen from. Raises: as there."""
    return {setting: rates["tried"] for setting, rates in _chosen(dataset).items()}


def searched_rates(dataset: str) -> dict[str, dict[str, Any]]:
    """The table `rates` of a data set: setting -> rate by loss, and the grid `tried`; empty where
    nobody has searched.

    Raises:  ValueError where the grid of a setting is missing or empty.
    """
    rates = _tables(dataset).get("rates", {}) if dataset in datasets_with_bases() else {}
    for setting, of_setting in rates.items():
        if not of_setting.get("tried"):
            raise ValueError(f'{dataset}.toml in {BASES.name}/: [rates."{setting}"] needs the '
                             "learning rates that its own were chosen from, such as tried = [1e-3, "
                             f"2e-3, 4e-3]; found {of_setting.get('tried', 'no `tried`')}")
    return rates


def _chosen(dataset: str) -> dict[str, dict[str, Any]]:
    rates = searched_rates(dataset)
    if not rates:
        raise ValueError(f"nobody has searched the learning rates of {dataset}: {dataset}.toml in "
                         f"{BASES.name}/ has no table [rates]; run this on scenes or flickr8k")
    return rates


def rate_in(dataset: str, name: str, loss: str, usual: float) -> float:
    """The learning rate that was searched for a loss in a base; a loss that was not has that of the
    hardest negative, and all have the usual one where nobody has searched."""
    rates = searched_rates(dataset).get(name, {})
    return rates.get(loss, rates.get("hardest", usual))


def at_edge(dataset: str, arm: str) -> bool:
    """Whether an arm such as "vsepp+gru/sum" trains at a rate that is the smallest or the largest
    of those tried: a better one may lie beyond. An arm of other terms has the rate of "hardest".
    """
    setting, slash, loss = arm.rpartition("/")
    if not slash:
        return False
    rates = searched_rates(dataset).get(setting)
    if rates is None:
        return False
    return not min(rates["tried"]) < rates.get(loss, rates["hardest"]) < max(rates["tried"])


def _tables(dataset: str) -> dict[str, Any]:
    """All tables of a data set, as written."""
    return deepcopy(_parsed((BASES / f"{dataset}.toml").read_text(encoding="utf-8")))


_parsed = lru_cache(maxsize=8)(tomllib.loads)  # a notebook asks for some hundred configs
