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
from itr_study.lab.studies.arms import ArmRun, base_config, of_epochs, over_seeds
from itr_study.lab.studies.parameters import PAPERS, Parameters

SEEDS = 3
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


def preset_here(name: str, dataset: str, parameters: Parameters) -> RunConfig:
    """Build a preset on the images of the base that is most like it: pooled, boxes, or a grid."""
    like = {1: "two_branch", 36: "saf"}.get(_table(name)["inputs"]["regions"], "dvse")
    start = base_config(dataset, like, parameters)
    return preset(name, dataset, start.images, data_options=start.data_options)


def paper_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the presets of a notebook's paper on the data at hand."""
    arms: list[ArmRun] = []
    paper = PAPERS[parameters.model_config["title"]]
    for name in preset_tables():
        if name.partition("+")[0] == paper and (name != "dvse+cub" or dataset == "cub"):
            config = of_epochs(preset_here(name, dataset, parameters), parameters.epochs)
            if config not in [run.config for run in arms]:  # of two networks that we lack
                arms += over_seeds(f"{name}, as its paper trains", config, SEEDS)
    return arms


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
