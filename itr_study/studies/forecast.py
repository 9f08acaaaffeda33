"""What a batch has to train: which runs are there, which are not, and the hours that takes."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from itr_study.data import DATASETS
from itr_study.runs.committed import figures_folder
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import identify
from itr_study.runs.rows import Rows
from itr_study.runs.run import is_complete
from itr_study.runs.store import RunStore
from itr_study.studies.plans import PLANS


@dataclass
class Planned:
    """The runs of one notebook; a run that an earlier notebook makes counts as present."""

    notebook: str
    present: int = 0
    missing: int = 0
    stale: int = 0  # there, but a part has a new version since: trained again
    hours: float = 0.0  # of missing and stale runs, one after the other
    unknown: int = 0  # runs without any like them to tell the time by
    runs: list[str] = field(default_factory=list, repr=False)  # ids to be trained


def planned(paths: Sequence[Path], parameters: Mapping[str, Any]) -> list[Planned]:
    """What each notebook would train with these parameters (profile, dataset, data, figures).

    Raises:  DataError where the data is not there and no rows of it are kept.
    """
    known = _Known.read(parameters)
    return [_plan_one(path.stem, known) for path in paths]


@dataclass
class _Known:
    """What is looked up for every run."""

    parameters: Mapping[str, Any]
    rows: Rows
    kept: dict[str, dict]  # the rows by run
    old: set[str]  # their configs, whatever versions of the parts made them
    seen: set[str] = field(default_factory=set)  # runs planned already

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> "_Known":
        dataset, old = parameters["dataset"], set()
        rows = Rows(figures_folder(parameters.get("figures")) / dataset)
        kept = {} if DATASETS[dataset].generated else rows.read()
        for row in kept.values():
            with suppress(ValueError):  # of a part that is gone: no config of today equals it
                old.add(RunConfig.model_validate_json(row["config"]).model_dump_json())
        return cls(parameters, rows, kept, old)

    def has(self, run: str) -> bool:
        """Whether a run needs no training: planned before, kept as a row, or in the store."""
        if run in self.seen or (run in self.kept and self.rows.complete(run) is not None):
            return True
        found = RunStore().result(run)
        return found is not None and is_complete(found)


def _plan_one(name: str, known: _Known) -> Planned:
    plan, make = Planned(name), PLANS.get(name)
    wanted = make(known.parameters["dataset"], known.parameters["profile"]) if make else ()
    for config in wanted:
        run = identify(config, known.parameters.get("data"), known.rows.folder.parent).run
        if known.has(run):
            plan.present += 1
            continue
        known.seen.add(run)
        plan.runs.append(run)
        stale = config.model_dump_json() in known.old
        plan.stale, plan.missing = plan.stale + stale, plan.missing + (not stale)
        minutes = expected_minutes(config, known.kept)
        plan.hours += (minutes or 0.0) / 60
        plan.unknown += minutes is None
    return plan


def expected_minutes(config: RunConfig, kept: dict[str, dict]) -> float | None:
    """Median minutes of the rows most like a config; None where no row has the same model."""
    same = [row for row in kept.values() if row["model"] == config.model and row["minutes"]]
    alike = [row for row in same if (row["images"], row["tokens"], row["sentences"]) ==
             (config.images, config.tokens, config.sentences)
             and json.loads(row["config"])["settings"]["epochs"] == config.settings.epochs]
    found = alike or same
    return median(row["minutes"] for row in found) if found else None


def plan_table(plans: Sequence[Planned]) -> str:
    """One line a notebook and the sum."""
    total = Planned("all", sum(p.present for p in plans), sum(p.missing for p in plans),
                    sum(p.stale for p in plans), sum(p.hours for p in plans),
                    sum(p.unknown for p in plans))
    width = max(len("notebook"), *(len(p.notebook) for p in [*plans, total]))
    lines = [f"{'notebook':<{width}}  present  missing  stale  hours of one core"]
    for p in [*plans, total]:
        note = f" + {p.unknown} runs of unknown length" if p.unknown else ""
        lines.append(f"{p.notebook:<{width}}  {p.present:7}  {p.missing:7}  {p.stale:5}  "
                     f"{p.hours:17.1f}{note}")
    return "\n".join(lines)
