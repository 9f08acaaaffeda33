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
    """Read all presets by name: fields of a config, and those of BESIDE.

    These are about (a sentence), place (paper and section), inputs (sizes of what the model read),
    ours (see `not_stated`), and rerank (arguments of the re-ranker "fast") if the paper re-ranks.
    """
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def preset(name: str, dataset: str, images: str, **changes: Any) -> RunConfig:
    """Build the settings of a paper on a data set; raises as `RunConfig`, for unknown names.

    Args:
        name: of `preset_tables`: a paper, or one with another model ("listwise+sgr", "dvse+cub").
        dataset: name of the data set.
        images: features instead of the paper's own, as in `RunConfig`.
        changes: as in `RunConfig.with_`.
    """
    table = _table(name)
    fields = {key: value for key, value in table.items() if key not in BESIDE}
    return RunConfig.model_validate({"dataset": dataset, "images": images} | fields).with_(
        **changes)


def not_stated(name: str) -> tuple[str, ...]:
    """List what the paper of a preset leaves out, by dotted path: values of ours.

    So is all that a preset does not write, such as dropout or no weight decay (AdamW is then Adam).

    Raises: ValueError: an unknown name.
    """
    return tuple(_table(name)["ours"])


def _table(name: str) -> dict[str, Any]:
    tables = preset_tables()
    check_choice("preset", name, tables)
    return tables[name]
