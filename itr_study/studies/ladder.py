"""The ladder to the second judge, `clean_gru`: what each step is worth on dev, one at a time.

It has nothing to do with the ladder loss.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from itr_study.runs.config import RunConfig
from itr_study.studies.arms import ArmRun, base_config, over_seeds, sum_of

LOSSES = ("sum", "hardest")  # the steps are chosen for both alike


class Rung(NamedTuple):
    """One step from the rung below it; "" is the base config."""

    below: str
    changes: Mapping[str, Any]


RUNGS: dict[str, Rung] = {
    "first guess": Rung("", {}),
    "own words": Rung("first guess", {"tokens": "words"}),
    "both ways": Rung("first guess", {"model_arguments.text": "bigru"}),
    "wider state": Rung("first guess", {"model_arguments.text_size": 512,
                                        "model_arguments.hidden_dropout": 0.5}),
    "hidden layer": Rung("first guess", {"model_arguments.image_hidden": 1024,
                                         "model_arguments.hidden_dropout": 0.5}),
    "words dropped": Rung("first guess", {"model_arguments.word_dropout": 0.2}),
    "larger batch": Rung("first guess", {"settings.batch_size": 256}),
    "mean of weights": Rung("first guess", {"settings.average": 3}),
    "one network": Rung("first guess", {"images": "lite2:pooled:flip"}),
    "grid": Rung("one network", {"images": "lite2:grid:flip"}),  # two have grids of other sizes
    "learnt pool": Rung("grid", {"model_arguments.pool": "gpo"}),
    "regions dropped": Rung("learnt pool", {"model_arguments.region_dropout": 0.2}),
}


def ladder_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every rung with every loss, as "rung/loss", over `parameters.seeds` seeds.

    The sum has the settings of the hardest negative, whose warm-up it is.
    """
    return [arm for name in RUNGS for loss in LOSSES for arm in over_seeds(
        f"{name}/{loss}", sum_of(rung_config(dataset, name, parameters), loss),
        parameters.seeds)]


def rung_config(dataset: str, name: str, parameters: SimpleNamespace) -> RunConfig:
    """The base `clean_gru` with the changes of a rung and of all below it."""
    rung = RUNGS[name]
    start = (rung_config(dataset, rung.below, parameters) if rung.below else
             base_config(dataset, "clean_gru", parameters))
    return start.with_(**rung.changes)
