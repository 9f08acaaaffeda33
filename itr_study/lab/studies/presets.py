"""The papers' own settings as configs, and which of their numbers are ours.

    config = preset("dvse", "flickr8k", "lite0:grid:one")
    not_stated("dvse")          ("settings.batch_size", ...)

They say what a paper did, on data and features of its size; the bases say what works here.
"""

import tomllib
from pathlib import Path
from typing import Any

from itr_study.checks import check_choice
from itr_study.lab.runs.config import RunConfig

FILE = Path(__file__).with_name("presets.toml")
# What a table says beside the fields of a config.
BESIDE = ("about", "place", "inputs", "ours", "rerank")


def preset_tables() -> dict[str, dict[str, Any]]:
    """All presets by name, as written: fields of a config and, beside them, about (a sentence),
    place (paper and section), inputs (sizes of what the paper's model read), ours (see
    `not_stated`), and rerank (arguments of the re-ranker "fast") where the paper re-ranks."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def preset(name: str, dataset: str, images: str, **changes: Any) -> RunConfig:
    """The settings of a paper on a data set.

    Args:    name: a paper, "topk", "listwise", "bcls" or "dvse", or one with another model or
             another setting of it, such as "listwise+sgr" or "dvse+cub" (all: `preset_tables`);
             images: features in the place of the paper's own, as in `RunConfig`; changes: as in
             `RunConfig.with_`.
    Raises:  ValueError for an unknown name, and as `RunConfig`.
    """
    table = _table(name)
    fields = {key: value for key, value in table.items() if key not in BESIDE}
    return RunConfig.model_validate({"dataset": dataset, "images": images} | fields).with_(
        **changes)


def not_stated(name: str) -> tuple[str, ...]:
    """What the paper of a preset leaves out, by dotted path: there the preset's values are ours.
    So is what a preset does not write at all, such as dropout, or no weight decay (with which AdamW
    is Adam): the defaults of `Settings`, models and losses.

    Raises:  ValueError for an unknown name.
    """
    return tuple(_table(name)["ours"])


def _table(name: str) -> dict[str, Any]:
    tables = preset_tables()
    check_choice("preset", name, tables)
    return tables[name]
