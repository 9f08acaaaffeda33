"""Explorers of trained runs that wait for those that are not on this machine.

    study.pane(explorers.Search, study.arms(listwise.explored_arms))
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from itr_study.data.base import DataError
from itr_study.evaluation.search import Searcher
from itr_study.explorers import Explorer, Pane, of_models
from itr_study.explorers.models import check_models
from itr_study.explorers.training import Trained
from itr_study.plots.names import name_of
from itr_study.runs.background import BackgroundRun
from itr_study.runs.config import RunConfig
from itr_study.runs.published import Published, keeps_rows
from itr_study.studies.arms import ArmRun
from itr_study.studies.forecast import expected_minutes


def pane_of(kind: type[Explorer], runs: Mapping[str, ArmRun] | Sequence[ArmRun],
            searcher: Callable[[ArmRun], Searcher], root: Path | str | None = None,
            at_once: int = 2, device: str = "auto") -> Pane:
    """An explorer of the models of runs; where one is missing, a pane that says why and trains it
    in the background when a reader asks for that.

    Args:    kind: Search, WhoMoved, YouJudge, EmbeddingMap or Looking; runs: by how a reader calls
             them, or in order, called by their arms; searcher: of a run that has ended; root:
             folder of the real data sets; at_once: how many are trained side by side; device: as
             in `fit`.
    Raises:  ValueError for another class, a number of runs that it does not take, and two runs
             under one name.
    """
    named = dict(runs) if isinstance(runs, Mapping) else {name_of(run.label): run for run in runs}
    if len(named) < len(runs):
        raise ValueError(f"{len(runs)} runs have {len(named)} names, those of their arms "
                         f"({', '.join(named)}); name them: {{'seed 0': run, 'seed 1': other}}")
    check_models(kind, named)
    found = {name: _background(run.config, root, device) for name, run in named.items()}
    return Pane(kind, found, lambda: of_models(kind, {
        name: searcher(run) for name, run in named.items()}),
        _minutes({name: run.config for name, run in named.items()}), max(at_once, 1))


def _background(config: RunConfig, root: Path | str | None, device: str) -> Trained | str:
    """A run to be watched and trained, or that it can have no data, in words."""
    try:
        return BackgroundRun(config, root, device=device)
    except DataError as error:
        return f"needs data that is not here ({error})"


def _minutes(configs: Mapping[str, RunConfig]) -> dict[str, float]:
    """About how long each is trained, where runs like it are published."""
    kept = {name: config for name, config in configs.items() if keeps_rows(config)}
    tables = {dataset: Published(dataset).table.read()
              for dataset in {config.dataset for config in kept.values()}}
    known = {name: expected_minutes(config, tables[config.dataset])
             for name, config in kept.items()}
    return {name: minutes for name, minutes in known.items() if minutes}
