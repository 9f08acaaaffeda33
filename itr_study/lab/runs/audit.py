"""Check published rows: retrain some, chosen by chance, and compare the numbers.

All that was measured on dev and test is compared; never what it cost (minutes, seconds), which is
the machine's.
"""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.rows import make_row
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore

# Where all of these agree a run is repeated to the last bit. Elsewhere, and where an old row does
# not state them, rounding grows into differences like those between seeds; this many points of
# RSUM are more.
MACHINE = ("device", "software", "instructions", "arithmetic")
OTHER_MACHINE = 10.0


class Audited(NamedTuple):
    """One row retrained: whether it may stand, and why."""

    run_id: str
    good: bool
    reason: str


def audit(dataset: str, root: Path | str | None, count: int, seed: int = 0,
          say: Callable[[str], None] = print) -> list[Audited]:
    """Retrain `count` random rows in an empty store; ValueError where no run is published."""
    published = Published(dataset)
    rows = [row for row in published.table.read().values() if row["status"] == "done"]
    if not rows:
        raise ValueError(f"no runs are published in {published.folder}; audit needs some")
    results = []
    for row in random.Random(seed).sample(rows, min(count, len(rows))):
        say(f"{row['run']}: {row['model']}, seed {row['seed']}, about {row['minutes']:.1f} min")
        run = identify(RunConfig.model_validate_json(row["config"]), root)
        if run.id != row["run"]:
            audited = Audited(row["run"], True, "stale: a part or the data has changed since")
        else:
            with tempfile.TemporaryDirectory(prefix="itr_study-audit-") as store:
                audited = compare(row, make_row(run, execute(run, root, store=RunStore(store))))
        say(f"{row['run']}: {audited.reason}")
        results.append(audited)
    return results


def compare(old: dict[str, Any], new: dict[str, Any]) -> Audited:
    """Compare a retrained row with the published one."""
    names = [n for n in old if n.startswith(("dev_", "test_")) and old[n] is not None]
    differences = {n: abs(old[n] - new[n]) for n in names if new.get(n) is not None}
    lost = [n for n in names if n not in differences]
    if new["status"] != "done" or lost:
        return Audited(old["run"], False, f"{new['status']}; without {', '.join(lost) or 'loss'}")
    differing = [name for name in MACHINE if not old.get(name) or old[name] != new.get(name)]
    checked = {n: v for n, v in differences.items() if n.endswith("rsum") or not differing}
    limit, machines = 1e-6, f"same {', '.join(MACHINE)}"
    if differing:
        parts = [f"{name} {old.get(name) or 'unknown'}, here {new.get(name)}" for name in differing]
        limit = OTHER_MACHINE
        machines = f"other machine: {'; '.join(parts)}; RSUM within {limit:g}"
    if not checked:
        return Audited(old["run"], False, f"nothing to compare ({machines})")
    good = all(value <= limit for value in checked.values())
    worst = max(differences, key=differences.get)
    return Audited(old["run"], good, f"{'equal' if good else 'DIFFERENT'} ({machines}); the "
                   f"largest difference is {differences[worst]:.4g} in {worst}")
