"""The settings that runs start from, by data set, and their learning rates.

`settings.toml` holds every setting, tuned on Flickr8k; <dataset>.toml holds what differs on that
data: under `[all]` for every setting, and in a table for one. A setting is put together in this
order: the setting that `like` names; the table of settings.toml, unless the data set names a
`like` of its own; `[all]`; the data set's table. `settings` is merged key by key, any other key is
replaced. Reading the tables does not load torch: the command answers a typo at once.
"""

from __future__ import annotations

import tomllib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itr_study.checks import check_choice
from itr_study.data import DATASETS

if TYPE_CHECKING:
    from itr_study.lab.runs.config import RunConfig

BASES = Path(__file__).parent
TUNED = "flickr8k"  # where the common settings were tuned
BESIDE = ("about", "rates", "side_weights")  # keys of a table that are no part of a config


def base_tables(dataset: str) -> dict[str, dict[str, Any]]:
    """Put together the settings of a data set by name, `about` included.

    Raises:
        ValueError: An unknown data set, a `like` that names no setting or itself.
    """
    check_choice("dataset", dataset, DATASETS)
    return deepcopy(_settings(*_texts(dataset)))


def base_values(dataset: str, name: str) -> dict[str, Any]:
    """The fields of a base config. Raises: ValueError for an unknown name."""
    tables = base_tables(dataset)
    check_choice(f"base config of {dataset}", name, tables)
    return {"dataset": dataset} | {k: v for k, v in tables[name].items() if k not in BESIDE}


def tuned_on(dataset: str, setting: str) -> str:
    """Name the data set whose dev split the learning rates of a setting were chosen on.

    Example:
        >>> tuned_on("coco", "two_branch+fisher"), tuned_on("scenes", "vsepp+gru")
        ('flickr8k', 'scenes')
    """
    common, own = map(_parsed, _texts(dataset))
    while setting:
        for tables, name in ((own, dataset), (common, TUNED)):
            if "learning_rate" in tables.get(setting, {}).get("settings", {}) or (
                    setting in tables.get("rates", {})):
                return name
        setting = (common.get(setting, {}) | own.get(setting, {})).get("like", "")
    return TUNED


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
    """Learning rate by setting and loss, chosen on dev from the grid of `rate_arms`."""
    return {setting: {loss: rate for loss, rate in rates.items() if loss != "tried"}
            for setting, rates in searched_rates(dataset).items()}


def tried_rates(dataset: str) -> dict[str, list[float]]:
    """The grid of each setting that its frozen rates were chosen from."""
    return {setting: rates["tried"] for setting, rates in searched_rates(dataset).items()}


def searched_rates(dataset: str) -> dict[str, dict[str, Any]]:
    """The table `rates` of a data set: setting -> rate by loss, and the grid `tried`; of settings
    that nobody searched there the common ones.

    Raises:  ValueError where the grid of a setting is missing or empty.
    """
    rates = {}
    for table in map(_parsed, _texts(dataset)):
        rates |= deepcopy(table.get("rates", {}))
    for setting, of_setting in rates.items():
        if not of_setting.get("tried"):
            raise ValueError(f'{BASES.name}/: [rates."{setting}"] of {dataset} needs the learning '
                             "rates that its own were chosen from, such as tried = [1e-3, 2e-3, "
                             f"4e-3]; found {of_setting.get('tried', 'no `tried`')}")
    return rates


def rate_in(dataset: str, name: str, loss: str, usual: float) -> float:
    """The learning rate that was searched for a loss in a setting; a loss that was not has that of
    the hardest negative, and a setting that was not the usual one."""
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


def _texts(dataset: str) -> tuple[str, str]:
    """The common settings and those of a data set, as written; "" without a file."""
    own = BASES / f"{dataset}.toml"
    return ((BASES / "settings.toml").read_text(encoding="utf-8"),
            own.read_text(encoding="utf-8") if own.exists() else "")


@lru_cache(maxsize=8)  # a notebook asks for some hundred configs
def _settings(common: str, own: str) -> dict[str, dict[str, Any]]:
    shared, here = _parsed(common), _parsed(own)
    names = [name for name in shared | here if name not in ("all", "rates")]

    def table(name: str, asked: tuple[str, ...] = ()) -> dict[str, Any]:
        if name not in names or name in asked:
            raise ValueError(f"{BASES.name}/: like = {name!r} of {asked[-1]!r} must name another "
                             f"setting, one of {', '.join(names)}")
        mine = here.get(name, {})
        parts = [mine] if "like" in mine else [shared.get(name, {}), mine]
        like = parts[0].get("like")
        made = table(like, (*asked, name)) if like else {}
        for part in (*parts[:-1], here.get("all", {}), parts[-1]):
            made = made | part | {"settings": made.get("settings", {}) | part.get("settings", {})}
        return {key: value for key, value in made.items() if key != "like"}

    return {name: table(name) for name in names}


_parsed = lru_cache(maxsize=16)(tomllib.loads)
