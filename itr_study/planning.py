"""What a batch has to train: which runs are there, which are not, and the hours that takes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from itr_study.atomic import canonical_json
from itr_study.configs import RunConfig
from itr_study.identity import GENERATED, identify
from itr_study.plans import PLANS
from itr_study.rows import Rows
from itr_study.runs import figures_folder
from itr_study.store import RunStore


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
    dataset, root = parameters["dataset"], parameters.get("data")
    rows = Rows(figures_folder(parameters.get("figures")) / dataset)
    kept, seen = ({} if dataset in GENERATED else rows.read()), set()
    return [_plan_one(path.stem, parameters, root, kept, rows, seen) for path in paths]


def _plan_one(name: str, parameters: Mapping[str, Any], root: str | None, kept: dict[str, dict],
              rows: Rows, seen: set[str]) -> Planned:
    plan = Planned(name)
    make = PLANS.get(name)
    for config in make(parameters["dataset"], parameters["profile"]) if make else ():
        run = identify(config, root, rows.folder.parent).run
        if run in seen or _is_there(run, kept, rows):
            plan.present += 1
            continue
        seen.add(run)
        plan.runs.append(run)
        if _same_config(config, kept):
            plan.stale += 1
        else:
            plan.missing += 1
        minutes = expected_minutes(config, kept)
        plan.hours += (minutes or 0.0) / 60
        plan.unknown += minutes is None
    return plan


def _is_there(run: str, kept: dict[str, dict], rows: Rows) -> bool:
    if run in kept and rows.complete(run) is not None:
        return True
    return (RunStore().path(run) / "manifest.json").exists()


def _same_config(config: RunConfig, kept: dict[str, dict]) -> bool:
    """Whether a row of this very config is kept under another id."""
    text = canonical_json(config.model_dump(mode="json"))
    return any(row["config"] == text for row in kept.values())


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
