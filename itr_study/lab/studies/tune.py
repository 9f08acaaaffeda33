"""Search the learning rate of a setting on the dev split of the data at hand, and keep it.

Half, once and twice the rates taken over are tried, in one grid for all losses of the setting.
While a best one lies at an end of the grid, it is widened by one more. Runs are those of the store:
a search that was stopped goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from itr_study.data.base import RetrievalDataset
from itr_study.digits import counted
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.runs.store import ENDED
from itr_study.lab.studies import arms as shared
from itr_study.lab.studies.bases import NOWHERE, base_tables, frozen_rates, keep_tuned, tuned_on
from itr_study.lab.studies.parameters import Parameters

WIDENED = 5  # times at most
OWN = "objective"  # of a setting, where its rates are not by loss


@dataclass(frozen=True)
class Search:
    """The search of one setting on the dev split of some data."""

    setting: str
    configs: dict[str, RunConfig]  # by loss, at the rates taken over
    own: str  # the loss that is the setting's own objective
    data: RetrievalDataset
    root: Path | str | None

    @classmethod
    def make(cls, setting: str, dataset: str, root: Path | str | None,
             options: dict[str, Any]) -> "Search":
        """Choose what is searched. ValueError: there is no such setting, or it was tuned there."""
        if setting in base_tables(dataset) and tuned_on(dataset, setting) == dataset:
            raise ValueError(f"the learning rates of {setting} were tuned on {dataset}, and rows "
                             f"are published at them. For another one: itr-study train {setting} "
                             f"--dataset {dataset} --set settings.learning_rate=1e-3")
        parameters = shared.reading(Parameters.of(
            dataset=dataset, profile="full", data_options=options), root).with_rates(NOWHERE)
        start, rates = shared.base_config(dataset, setting, parameters), frozen_rates(dataset)
        if setting in rates and not {*shared.TABLE_IV} <= rates[setting].keys():
            raise ValueError(f"notebook 14 searches the rates of {setting}: itr-study reproduce 14 "
                             "-p rate_factors=[0.5,1,2]")
        configs = {loss: shared.with_loss(dataset, setting, parameters, loss, rates[setting][loss])
                   for loss in shared.TABLE_IV if setting in rates}
        same = [loss for loss, config in configs.items() if config.objective == start.objective]
        configs = configs if same else {OWN: start} | configs
        return cls(setting, configs, (*same, OWN)[0], dataset_of(start, root), root)

    def grid(self) -> list[float]:
        """List the rates that are tried first."""
        return sorted({float(f"{config.settings.learning_rate * times:g}")
                       for config in self.configs.values() for times in (0.5, 1, 2)})

    def arms(self, grid: Sequence[float]) -> list[shared.ArmRun]:
        """List the runs of a grid: each loss at each rate, seed 0."""
        return [run for loss, config in self.configs.items() for rate in grid
                for run in shared.over_seeds(f"{self.setting}/{loss}/{rate:g}", config.with_(
                    **{"settings.learning_rate": rate}), 1, setting=self.setting, loss=loss,
                    rate=rate)]

    def plan(self) -> str:
        """Say which runs are first, how many are here, and how many more there may be."""
        grid, most = self.grid(), len(self.configs) * WIDENED
        arms = self.arms(grid)
        return (f"{self.setting} on {self.data.name} ({self.data.fingerprint[:16]}): "
                f"{', '.join(self.configs)} at {', '.join(f'{rate:g}' for rate in grid)}: "
                f"{counted(len(arms), 'run')} of {arms[0].config.settings.epochs} epochs, "
                f"{len(shared.ended_arms(arms, root=self.root))} of them here. While a best rate "
                f"lies at an end of these, more are tried, {counted(most, 'run')} at most.")

    def table(self, device: str = "auto") -> pd.DataFrame:
        """Train what is missing, widen the grid where need be; `arms.rate_table` of all runs.

        Raises: ValueError: a run met an accident, such as a batch with too few negatives.
        """
        grid, widened = self.grid(), 0
        while True:
            rows = shared.train_arms(self.arms(grid), root=self.root, device=device)
            for run in rows[~rows["status"].isin(ENDED)].itertuples():
                raise ValueError(f"run {run.run} ({run.arm}) {run.status}: {run.reason}")
            table = shared.rate_table(rows, {self.setting: {
                loss: config.settings.learning_rate for loss, config in self.configs.items()}})
            ends = {*table.loc[table["best"], "edge"], "smallest" * (
                shared.without_best(table) != [])}
            wider = [float(f"{grid[0] / 2:g}")] * ("smallest" in ends)
            wider += [float(f"{grid[-1] * 2:g}")] * ("largest" in ends)
            if not wider or widened == WIDENED:
                return table
            grid, widened = sorted([*grid, *wider]), widened + 1

    def keep(self, table: pd.DataFrame) -> Path:
        """Keep the best rates of a search for these data; the file. Raises: as `chosen_rates`."""
        rates = shared.chosen_rates(table)[self.setting]
        found: dict[str, Any] = {"learning_rate": rates[self.own],
                                 "given": self.configs[self.own].images == shared.GIVEN}
        if rates.pop(OWN, None) is None or rates:
            found["rates"] = rates | {"tried": sorted(set(table["rate"]))}
        return keep_tuned(self.data.name, self.data.fingerprint, self.setting, found)


def written(table: pd.DataFrame) -> str:
    """Write a search as plain text: a line for each loss and rate, marked if best or taken over."""
    notes = table["best"].map({True: "best", False: ""}) \
        + table["frozen"].map({True: " (taken over)", False: ""})
    shown = table[["loss", "rate"]].assign(**{"RSUM on dev": table["dev_rsum"], "": notes})
    return shown.to_string(index=False, na_rep="diverged", float_format="{:.6g}".format)
