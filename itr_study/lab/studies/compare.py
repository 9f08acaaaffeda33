"""Losses or models compared with others: all trained alike, each at the best of four rates.

Rates are multiples of the base config's, the same for all, and the best on dev (seed 0) is taken.
Runs that are published, or in the store, are read; a stopped comparison goes on where it was.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.folder import too_small
from itr_study.evaluation.table import RETRIEVAL
from itr_study.files.atomic import canonical_json
from itr_study.lab.ledger.rivals import Runs
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.runs.published import NotKept, Published
from itr_study.lab.runs.run import check_model
from itr_study.lab.runs.sweeps import ended_row
from itr_study.lab.studies.arms import TERMS, ArmRun, base_config, over_seeds, reading, train_arms
from itr_study.lab.studies.bases import base_tables
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.plans import expected_minutes
from itr_study.lab.studies.results import collapses, fair_columns, ranks_of
from itr_study.losses import LOSSES
from itr_study.losses.base import keep_part
from itr_study.losses.check import check_loss
from itr_study.models import MODELS

RIVALS = ("hardest", "top5", "soft", "info_nce")
FACTORS = (0.5, 1.0, 2.0, 4.0)  # of the base's learning rate
FARTHER = 2  # rates tried, at most, beyond an end that is best
SEEDS = 5
FATAL = ("gives", "passes no gradient", "check_value", "check_gradient")  # how such findings begin
TIMED = "flickr8k"  # whose rows tell how long a run takes, where data has none of its own
Changes = Mapping[str, Any]  # of a base config


class Setup(NamedTuple):
    """A base config, what is compared in it (what each changes, by name), and what to know."""

    base: str
    start: RunConfig
    variants: dict[str, Changes]
    root: str | None = None
    notes: Sequence[str] = ()

    def arms(self, name: str, factor: float, seeds: int) -> list[ArmRun]:
        """List the runs of a variant at a multiple of the base's rate."""
        rate = {"settings.learning_rate": factor * self.start.settings.learning_rate}
        return over_seeds(f"{name}@{factor:g}", self.start.with_(**self.variants[name] | rate),
                          seeds, loss=name, rate=factor)

    def rates(self, name: str, factors: Sequence[float]) -> list[ArmRun]:
        """List the runs of a variant with seed 0 at multiples of the base's rate."""
        return [run for factor in factors for run in self.arms(name, factor, 1)]


def set_up(dataset: str, base: str, quick: bool, root: str | None,
           variants: Mapping[str, Changes], options: Mapping[str, Any] | None = None,
           spare: Sequence[str] = ()) -> Setup:
    """Build what is trained: the base config on all of the data, or quick: on less of it.

    A model without a rival is compared with the base's own. One of `spare` that is another goes.
    Raises: ValueError: no such base, a model that cannot be built, nothing to compare, two alike.
    """
    check_choice(f"base config of {dataset}", base, base_tables(dataset))
    profile = "quick" if quick or not DATASETS[dataset].generated else "full"
    start = base_config(dataset, base, reading(Parameters.of(
        profile=profile, dataset=dataset, data=root, data_options=options or {}), root))
    found = {name: {} if changes.get("model") == start.model else changes  # its own arguments
             for name, changes in variants.items()}
    if len(found) == 1:
        found.setdefault(start.model, {})
    if len(found) == 1:
        raise ValueError(f"{start.model} is the model of {base} itself: name a rival, such as "
                         "--against my_model.py:MyModel")
    setup = Setup(base, start, found, root, too_small(dataset_of(start, root)))
    known: dict[str, str] = {}
    for name in list(found):
        config = setup.arms(name, 1.0, 1)[0].config
        if (same := known.setdefault(canonical_json(config.differing()), name)) != name:
            if name not in spare:
                raise ValueError(f"{name} is the same as {same} in {base}; name each once")
            del found[name]
            continue
        try:
            check_model(config)
        except ValueError as error:
            raise ValueError(f"{error}; a model is built as {name}(inputs), and another --base may "
                             "have the inputs that it reads") from error
    return setup


def read_variants(names: Sequence[str]) -> dict[str, Changes]:
    """Read what is compared; two of one name are called by what was typed.

    Raises: ValueError: as `read_variant`; the same twice.
    """
    read = [(typed, *read_variant(typed)) for typed in names]
    called = Counter(name for _, name, _ in read)
    found: dict[str, Changes] = {}
    for typed, name, changes in read:
        if same := next((other for other, known in found.items() if known == changes), None):
            raise ValueError(f"{typed} is the same as {same}; name each once")
        found[name if called[name] == 1 else typed] = changes
    return found


def read_variant(typed: str) -> tuple[str, Changes]:
    """Read file.py:Part, file.toml with `objective`, or the name of a loss or a model.

    Returns: its name, and what it changes of a base config.
    Raises: ValueError: what is wrong with the file, or with the loss, as `check_own`.
    """
    file, _, part = typed.rpartition(":")
    if file.endswith(".py"):
        kept = keep_part(Path(file).expanduser(), part)
        if hasattr(MODELS[kept], "encode_images"):
            return part, {"model": kept, "model_arguments": {}}
        check_own(kept, part)
        return part, {"objective": [{"loss": kept}]}
    if typed.endswith(".py"):
        raise ValueError(f"say which class or function of the file, such as {typed}:MyLoss")
    if typed.endswith(".toml"):
        return Path(typed).stem, {"objective": read_terms(Path(typed).expanduser())}
    if typed in MODELS:
        return typed, {"model": typed, "model_arguments": {}}
    if typed not in TERMS:
        check_choice("what is compared", typed, dict.fromkeys([*TERMS, *LOSSES, *MODELS]))
    return typed, {"objective": [TERMS.get(typed, {"loss": typed})]}


def check_own(kept: str, part: str) -> None:
    """Refuse a loss of a file that cannot be trained; print what else is wrong with it."""
    try:
        wrong = check_loss(LOSSES[kept]()).wrong
    except TypeError as error:
        raise ValueError(f"{part} cannot be built: {error}; give each argument of its constructor "
                         "a default") from error
    if fatal := [found for found in wrong if found.startswith(FATAL)]:
        call = "; it is called as loss(scores, relevance), both (images, texts)"
        raise ValueError(f"{part} cannot be trained: {fatal[0]}{call * ('Error' in fatal[0])}")
    for found in wrong:
        print(f"note: {part} {found}")


def read_terms(path: Path) -> list[dict[str, Any]]:
    """Read the terms of a saved objective; their losses may be of files, too."""
    try:
        terms = [dict(term) for term in
                 tomllib.loads(path.read_text(encoding="utf-8"))["objective"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} needs a list of terms, such as objective = [{{ loss = "
                         f'"topk", arguments = {{ k = 3 }} }}]; {error!r}') from error
    for term in terms:
        file, _, part = str(term.get("loss", "")).rpartition(":")
        if file.endswith(".py"):
            term["loss"] = keep_part(path.parent / Path(file).expanduser(), part)
            check_own(term["loss"], part)
    return terms


def minutes_left(setups: Sequence[Setup]) -> tuple[int, float]:
    """Count the missing runs and estimate their minutes on one core; NaN: unknown.

    Rates that are tried beyond an end are counted once the others have ended.
    """
    runs, minutes = 0, 0.0
    for setup in setups:
        rows = Published(setup.start.dataset).table.read() or Published(TIMED).table.read()
        for name in setup.variants:
            factors = [*FACTORS]
            first, *_ = found = [run.config for run in setup.rates(name, factors)]
            while None not in (ended := [ended_row(config, setup.root) for config in found]) and (
                    farther := beyond(factors, ended)):
                factors.append(farther)
                found = [run.config for run in setup.rates(name, factors)]
            missing = ended.count(None) and ended.count(None) + SEEDS - 1
            if not missing and (best := best_factor(factors, ended)):
                missing = [ended_row(run.config, setup.root)
                           for run in setup.arms(name, best, SEEDS)].count(None)
            each = missing and (expected_minutes(first, rows) or expected_minutes(
                setup.start, rows) or float("nan"))
            runs, minutes = runs + missing, minutes + each * missing
    return runs, minutes


def best_factor(factors: Sequence[float], rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Find which factor was best on dev; None: all diverged, or one failed and may be it."""
    if {row["status"] for row in rows} - {"done", "diverged"}:
        return None
    done = {factor: row["dev_rsum"] for factor, row in zip(factors, rows, strict=True)
            if row["status"] == "done"}
    return max(done, key=done.__getitem__, default=None)


def beyond(factors: Sequence[float], rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Choose the factor to try next, if the best is the least or the largest; None: none."""
    best = best_factor(factors, rows)
    if best is None or len(factors) >= len(FACTORS) + FARTHER:
        return None
    return best / 2 if best == min(factors) else best * 2 if best == max(factors) else None


def trained(setup: Setup, device: str, workers: int = 2, ours: str = "",
            begin: Callable[[str], None] = print) -> tuple[list[Runs], list[str]]:
    """Train what is missing of each variant: first its rates, then the best with all seeds.

    Args: ours: the variant that all others are compared with; begin: is told the name of each.
    Returns: the runs of each variant, and what is to be known of them.
    Raises: ValueError: a run failed, or a run of ours or of all others diverged.
    """
    sides, notes = [], [f"each was trained at {', '.join(f'{f:g}' for f in FACTORS)} × the rate of "
                        f"the base config, {setup.start.settings.learning_rate:g}, and at up to "
                        f"{FARTHER} more beyond the best, and takes the best on dev of seed 0",
                        *setup.notes]
    train = partial(train_arms, root=setup.root, workers=workers, device=device)
    for name in setup.variants:
        begin(name)
        factors = [*FACTORS]
        found = train(setup.rates(name, factors))
        while farther := beyond(factors, found.to_dict("records")):
            factors.append(farther)
            found = train(setup.rates(name, factors))
        best = best_factor(factors, found.to_dict("records"))
        if best:
            found = train(setup.arms(name, best, SEEDS))
        lost = found[found["status"] != "done"].sort_values("status", ascending=False)
        if len(lost):
            why = f"{len(lost)} of {len(found)} runs {lost['status'].iloc[0]}: " \
                  f"{lost['reason'].iloc[0]}"
            if name == ours or set(lost["status"]) != {"diverged"}:
                raise ValueError(f"{name} has no result, {why}. Runs that ended are kept; mend "
                                 "this and run the command again")
            notes.append(f"{name} is left out, {why}")
            continue
        if best in (min(factors), max(factors)):
            notes.append(f"{name}: the best rate, {best:g} × the base's, is an end of what was "
                         "tried; a better one may lie beyond")
        if fallen := [why for why in collapses(found) if why]:
            notes.append(f"{name}: {len(fallen)} of {len(found)} runs have {fallen[0]}")
        sides.append(side_of(name, found, setup))
    if len(sides) < 2:
        raise ValueError("; ".join(["nothing is left to compare", *notes[1:]]))
    return sides, notes


def metrics_in(setup: Setup) -> list[str]:
    """List what all variants of a setup are measured by."""
    columns = [name.removeprefix("test_") for name in fair_columns(setup.start.dataset)]
    return [name for name in (*RETRIEVAL, *columns) if not name.endswith("medr")]  # in steps


def side_of(name: str, rows: pd.DataFrame, setup: Setup) -> Runs:
    """Make the runs of a variant from rows that are done; with ranks, where they are kept."""
    records = rows.to_dict("records")
    tables = {str(row["seed"]): {metric: float(row[f"test_{metric}"])
                                 for metric in metrics_in(setup)
                                 if pd.notna(row.get(f"test_{metric}"))} for row in records}
    seen = rows["seen"].fillna("").iloc[0]
    try:
        ranks = dict(zip(tables, map(ranks_of, records), strict=True))
        owner = dataset_of(setup.start, setup.root).splits["test"].image_of_text
    except NotKept:  # of published runs
        ranks, owner = {}, None
    return Runs(name, tables, ranks, owner, f"{seen} has seen captions" * bool(seen))
