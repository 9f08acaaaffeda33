"""A loss or an objective compared with others: all trained alike, each at the best of four rates.

Rates are multiples of the base config's, the same for all, and the best on dev (seed 0) is taken.
Runs that are published, or in the store, are read; a stopped comparison goes on where it was.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.evaluation.table import RETRIEVAL
from itr_study.lab.ledger.rivals import Runs
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.sweeps import ended_row
from itr_study.lab.studies.arms import (
    TERMS,
    ArmRun,
    base_config,
    over_seeds,
    reading,
    sum_of,
    train_arms,
)
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.plans import expected_minutes
from itr_study.lab.studies.results import collapses, fair_columns
from itr_study.losses import LOSSES
from itr_study.losses.base import keep_loss
from itr_study.losses.check import check_loss

RIVALS = ("hardest", "top5", "soft", "info_nce")
FACTORS = (0.5, 1.0, 2.0, 4.0)  # of the base's learning rate
SEEDS = 5
FATAL = ("gives", "passes no gradient", "check_value", "check_gradient")  # how such findings begin
TIMED = "flickr8k"  # whose rows tell how long a run takes, where data has none of its own


class Setup(NamedTuple):
    """Where all are trained, and what: terms of each objective by name."""

    start: RunConfig
    objectives: dict[str, tuple[Any, ...]]
    root: str | None

    def arms(self, name: str, factor: float, seeds: int) -> list[ArmRun]:
        """List the runs of an objective at a multiple of the base's rate."""
        rate = factor * self.start.settings.learning_rate
        return over_seeds(f"{name}@{factor:g}", sum_of(self.start, *self.objectives[name]).with_(
            **{"settings.learning_rate": rate}), seeds, loss=name, rate=factor)


def set_up(dataset: str, base: str, quick: bool, root: str | None,
           objectives: Mapping[str, Sequence[Any]]) -> Setup:
    """Build what is trained: the base config on all of the data, or quick: on less of it."""
    profile = "quick" if quick or not DATASETS[dataset].generated else "full"
    parameters = reading(Parameters.of(profile=profile, dataset=dataset, data=root), root)
    return Setup(base_config(dataset, base, parameters),
                 {name: tuple(terms) for name, terms in objectives.items()}, root)


def own_objective(name: str) -> tuple[str, tuple[Any, ...]]:
    """Read what is compared: file.py:Loss, file.toml with `objective`, or a loss of the library.

    Returns: its name, and its terms.
    Raises: ValueError: what is wrong with the file, or with the loss: its value is no number or
        NaN, or has no gradient.
    """
    file, _, part = name.rpartition(":")
    if file.endswith(".py"):
        loss = keep_loss(Path(file).expanduser(), part)
        try:
            wrong = check_loss(LOSSES[loss]()).wrong
        except TypeError as error:
            raise ValueError(f"{part} cannot be built: {error}; give each argument of its "
                             "constructor a default") from error
        if fatal := [found for found in wrong if found.startswith(FATAL)]:
            raise ValueError(f"{part} cannot be trained: {fatal[0]}")
        for found in wrong:
            print(f"note: {part} {found}")
        return part, ({"loss": loss},)
    if name.endswith(".py"):
        raise ValueError(f"say which class or function of the file, such as {name}:MyLoss")
    if name.endswith(".toml"):
        try:
            terms = tomllib.loads(Path(name).expanduser().read_text(encoding="utf-8"))["objective"]
            return Path(name).stem, tuple(dict(term) for term in terms)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name} needs a list of terms, such as objective = [{{ loss = "
                             f'"topk", arguments = {{ k = 3 }} }}]; {error!r}') from error
    if name not in TERMS:
        check_choice("objective", name, [*TERMS, *LOSSES])
    return name, (TERMS.get(name, {"loss": name}),)


def minutes_left(setup: Setup) -> tuple[int, float | None]:
    """Count the runs that are missing, at most, and estimate their minutes on one core."""
    missing = 0
    for name in setup.objectives:
        absent = [[ended_row(run.config, setup.root) is None
                   for run in setup.arms(name, factor, SEEDS)] for factor in FACTORS]
        missing += sum(first for first, *_ in absent) + max(sum(rest) for _, *rest in absent)
    rows = Published(setup.start.dataset).table.read() or Published(TIMED).table.read()
    each = expected_minutes(setup.start, rows)
    return missing, None if each is None else each * missing


def trained(setup: Setup, device: str, workers: int = 2) -> tuple[list[Runs], list[str]]:
    """Train all that is missing: first the rates, then the best of each with all seeds.

    Returns: the runs of each objective, and what is to be known of them.
    Raises: ValueError: fewer than two objectives have been trained with all seeds.
    """
    searched = train_arms([run for name in setup.objectives for factor in FACTORS
                           for run in setup.arms(name, factor, 1)],
                          root=setup.root, workers=workers, device=device)
    best, notes = {}, [f"each was trained at {', '.join(f'{f:g}' for f in FACTORS)} × the rate of "
                       f"the base config, {setup.start.settings.learning_rate:g}, and takes the "
                       "best on dev of seed 0"]
    for name, part in searched.groupby("loss", sort=False):
        done = part[part["status"] == "done"]
        if done.empty:
            raise ValueError(f"{name}: all runs ended without a model, the first one because: "
                             f"{part['reason'].iloc[0]}")
        best[name] = float(done.loc[done["dev_rsum"].astype(float).idxmax(), "rate"])
        if best[name] in (FACTORS[0], FACTORS[-1]):
            notes.append(f"{name}: the best rate, {best[name]:g} × the base's, is an end of what "
                         "was tried; a better one may lie beyond")
    rows = train_arms([run for name in setup.objectives
                       for run in setup.arms(name, best[name], SEEDS)],
                      root=setup.root, workers=workers, device=device)
    return sides_of(rows, fair_columns(setup.start.dataset), notes), notes


def sides_of(rows: pd.DataFrame, graded: Sequence[str], notes: list[str]) -> list[Runs]:
    """Make the runs of each objective from rows; add to the notes what keeps one out."""
    sides = []
    for name, part in rows.groupby("loss", sort=False):
        done = part[part["status"] == "done"]
        if len(done) < len(part):
            lost = part[part["status"] != "done"].iloc[0]
            notes.append(f"{name} is left out: {len(part) - len(done)} of {len(part)} runs "
                         f"{lost['status']}: {lost['reason']}")
            continue
        if fallen := [why for why in collapses(done) if why]:
            notes.append(f"{name}: {len(fallen)} of {len(done)} runs have {fallen[0]}")
        columns = [name for name in (*(f"test_{key}" for key in RETRIEVAL), *graded)
                   if name in done and done[name].notna().all()]
        seen = done["seen"].fillna("").iloc[0]
        sides.append(Runs(name, {str(seed): {column.removeprefix("test_"): float(value) for
                                             column, value in zip(columns, values, strict=True)}
                                 for seed, *values in done[["seed", *columns]].itertuples(
                                     index=False)}, seen=f"{seen} has seen captions" * bool(seen)))
    if len(sides) < 2:
        raise ValueError("; ".join(["nothing is left to compare", *notes[1:]]))
    return sides
