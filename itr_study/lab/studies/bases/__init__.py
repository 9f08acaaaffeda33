"""The settings that runs start from, by data set, and their learning rates.

`settings.toml` holds every setting, tuned on Flickr8k; <dataset>.toml holds what differs on that
data: under `[all]` for every setting, and in a table for one. A setting is put together in this
order: the setting that `like` names; the table of settings.toml, unless the data set names a
`like` of its own; `[all]`; the data set's table. `settings` is merged key by key, any other key is
replaced. Reading the tables does not load torch: the command answers a typo at once.

`tuned` holds what `itr-study tune` chose on the very data at hand (`tuned_rates`), by setting: the
`learning_rate` of its own objective and, where rates are by loss, its table of `rates`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.files.atomic import folder_lock, read_json, write_json
from itr_study.files.paths import home

if TYPE_CHECKING:
    from itr_study.data.base import RetrievalDataset
    from itr_study.lab.runs.config import RunConfig

Tuned = Mapping[str, Mapping[str, Any]]
NOWHERE: Tuned = {}

BASES = Path(__file__).parent
TUNED = "flickr8k"  # where the common settings were tuned
BESIDE = ("about", "guess", "rates", "side_weights")  # keys of a table that are no part of a config


def base_tables(dataset: str, tuned: Tuned = NOWHERE) -> dict[str, dict[str, Any]]:
    """Put together the settings of a data set by name, `about` included.

    Raises: ValueError: An unknown data set, a `like` that names no setting or itself.
    """
    check_choice("dataset", dataset, DATASETS)
    tables = deepcopy(_settings(*_texts(dataset)))
    for name in tables.keys() & tuned:
        tables[name]["settings"]["learning_rate"] = tuned[name]["learning_rate"]
    return tables


def base_values(dataset: str, name: str, tuned: Tuned = NOWHERE) -> dict[str, Any]:
    """Return the fields of a base config. Raises: ValueError for an unknown name."""
    tables = base_tables(dataset, tuned)
    check_choice(f"base config of {dataset}", name, tables)
    return {"dataset": dataset} | {k: v for k, v in tables[name].items() if k not in BESIDE}


def tuned_on(dataset: str, setting: str) -> str:
    """Name the data set whose dev split chose the learning rates of a setting; "" if guessed.

    Example:
        >>> tuned_on("coco", "two_branch+fisher"), tuned_on("scenes", "vsepp+gru")
        ('flickr8k', 'scenes')
    """
    common, own = map(_parsed, _texts(dataset))
    while setting:
        for tables, name in ((own, dataset), (common, TUNED)):
            if "learning_rate" in tables.get(setting, {}).get("settings", {}) or (
                    setting in tables.get("rates", {})):
                return "" if tables.get(setting, {}).get("guess") else name
        setting = (common.get(setting, {}) | own.get(setting, {})).get("like", "")
    return TUNED


def base(dataset: str, name: str, tuned: Tuned = NOWHERE, **changes: Any) -> RunConfig:
    """Build the frozen base config of a data set; changes as of `RunConfig.with_`."""
    from itr_study.lab.runs.config import RunConfig

    return RunConfig.model_validate(base_values(dataset, name, tuned)).with_(**changes)


def own_rates(dataset: str, name: str) -> dict[str, float]:
    """Return rates by loss, if not the base's: a sum of fewer terms may need another."""
    return base_tables(dataset)[name].get("rates", {})


def side_weights(dataset: str, name: str) -> dict[str, float]:
    """Return weights by loss of the terms after the first, if not those of the base.

    The base's weight fits its own first term: a mean of five hinges is a hundredth of the sum.
    """
    return base_tables(dataset)[name].get("side_weights", {})


def frozen_rates(dataset: str, tuned: Tuned = NOWHERE) -> dict[str, dict[str, float]]:
    """Return rates by setting and loss, chosen on dev from the grid of `rate_arms`."""
    return {setting: {loss: rate for loss, rate in rates.items() if loss != "tried"}
            for setting, rates in searched_rates(dataset, tuned).items()}


def tried_rates(dataset: str, tuned: Tuned = NOWHERE) -> dict[str, list[float]]:
    """Return the grid of each setting that its frozen rates were chosen from."""
    return {setting: rates["tried"] for setting, rates in searched_rates(dataset, tuned).items()}


def searched_rates(dataset: str, tuned: Tuned = NOWHERE) -> dict[str, dict[str, Any]]:
    """Read rates by setting and loss, with the grid `tried`; not searched: the common.

    Raises: ValueError: the grid of a setting is missing or empty.
    """
    rates = {}
    for table in map(_parsed, _texts(dataset)):
        rates |= deepcopy(table.get("rates", {}))
    for setting, of_setting in rates.items():
        if not of_setting.get("tried"):
            raise ValueError(f'{BASES.name}/: [rates."{setting}"] of {dataset} needs the learning '
                             "rates that its own were chosen from, such as tried = [1e-3, 2e-3, "
                             f"4e-3]; found {of_setting.get('tried', 'no `tried`')}")
    return rates | {name: found["rates"] for name, found in tuned.items() if "rates" in found}


def rate_in(dataset: str, name: str, loss: str, usual: float, tuned: Tuned = NOWHERE) -> float:
    """Look up the rate of a loss in a setting, else of "hardest", else the usual one."""
    rates = searched_rates(dataset, tuned).get(name, {})
    return rates.get(loss, rates.get("hardest", usual))


def tuned_rates(name: str, data: Callable[[], RetrievalDataset], given: bool = False) -> Tuned:
    """Read what was tuned on these data, and on features that lie with them if they are given.

    data: gives the data, where any of this name were tuned.
    """
    if not any(_tuned_file(name, "").parent.glob(f"{name}-*.json")):
        return NOWHERE
    path = _tuned_file(name, data().fingerprint)
    found = read_json(path)["settings"] if path.exists() else {}
    return {setting: rates for setting, rates in found.items()
            if rates.get("given", given) == given}


def keep_tuned(name: str, fingerprint: str, setting: str, found: Mapping[str, Any]) -> Path:
    """Keep what was tuned for a setting in the home, by the data's fingerprint; the file."""
    path = _tuned_file(name, fingerprint)
    with folder_lock(path.parent):
        before = read_json(path)["settings"] if path.exists() else {}
        write_json(path, {"data": fingerprint, "settings": before | {setting: dict(found)}})
    return path


def _tuned_file(name: str, fingerprint: str) -> Path:
    return home() / "tuned" / f"{name}-{fingerprint[:16]}.json"


def _texts(dataset: str) -> tuple[str, str]:
    """Read the common settings and those of a data set; "" without a file."""
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
