"""What every batch of a training gives: the papers draw batches, our rows keep means of epochs."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from torch import Tensor

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.models.base import ModelOutput
from itr_study.runs.config import build_objective
from itr_study.runs.data import encoded_data
from itr_study.runs.run import build_model
from itr_study.studies.arms import ArmRun
from itr_study.training.devices import choose_device
from itr_study.training.loop import fit
from itr_study.training.objective import Objective


class LoggedObjective(Objective):
    """An objective that keeps the numbers of every batch in `steps`; what it gives is the same."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective.terms)
        self.steps: list[dict[str, float]] = []

    def forward(self, output: ModelOutput, batch: Batch,
                split: EncodedSplit) -> tuple[Tensor, dict[str, Tensor]]:
        value, report = super().forward(output, batch, split)
        self.steps.append({"loss": value.item()} | {name: number.item()
                                                    for name, number in report.items()})
        return value, report


def batch_log(arms: Sequence[ArmRun], root: Path | str | None = None,
              device: str = "auto") -> pd.DataFrame:
    """Train some runs here and now, without a warm-up, and keep nothing but this: one line per
    batch with arm, seed, step (from 1), loss and what the objective reports beside it.

    Args:    root: folder of the real data sets; device: as in `fit`.
    """
    logs = []
    for arm in arms:
        config, data = arm.config, encoded_data(arm.config, root, str(choose_device(device)))
        objective = LoggedObjective(build_objective(config.objective))
        fit(build_model(config, data.inputs), objective, data, config.settings, seed=config.seed,
            device=device)
        steps = range(1, len(objective.steps) + 1)
        logs.append(pd.DataFrame(objective.steps).assign(arm=arm.label, seed=config.seed,
                                                         step=steps))
    return pd.concat(logs, ignore_index=True)
