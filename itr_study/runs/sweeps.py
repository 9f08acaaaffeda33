"""Grids of runs: what is missing is trained in worker processes, what is there is read.

    configs = [base("flickr8k", "two_branch", **{"objective.0.arguments.k": k, "seed": s})
               for k in (1, 2, 5) for s in range(3)]
    sweep(configs, root=DATA)       one row per config, in that order
"""

import atexit
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from itr_study.files.paths import home
from itr_study.progress import progress
from itr_study.runs.committed import add_row, committed, figures_folder
from itr_study.runs.config import RunConfig
from itr_study.runs.data import data_part, encoded_data
from itr_study.runs.executors import Executor, Here, Workers
from itr_study.runs.identity import Identity, identify
from itr_study.runs.rows import about, knobs
from itr_study.runs.run import is_complete
from itr_study.runs.store import ENDED, RunStore
from itr_study.training.loop import choose_device

_kept: dict[tuple, Workers] = {}  # the workers of the last sweep, for the next


def sweep(configs: Iterable[RunConfig], *, workers: int = 2, root: Path | str | None = None,
          figures: Path | str | None = None, device: str = "auto",
          executor: Executor | None = None) -> pd.DataFrame:
    """One row per config, in their order; what is missing is trained.

    A run that fails in any way does not stop the others: its row has its status and reason and no
    metrics, and it is reported at the end; the next sweep tries it again.

    Args:    workers: processes, 0 = in this one; root: folder of the real data; figures: where
             rows are kept; device: as in `fit`; executor: another place to run them.
    Raises:  KeyboardInterrupt, after the running ones have saved.
    """
    configs = list(configs)
    identities = [identify(config, root, figures_folder(figures)) for config in configs]
    rows: dict[str, dict[str, Any]] = {}
    missing: dict[str, tuple[RunConfig, Identity]] = {}
    for config, identity in zip(configs, identities, strict=True):
        found = _present(config, identity, figures)
        if found is not None:
            rows[identity.run] = found
        else:
            missing[identity.run] = (config, identity)
    if missing:
        rows |= _train(missing, executor or _executor(workers, root, device),
                       root, figures, device)
        _report([rows[run] for run in missing])
    return pd.DataFrame([rows[identity.run] for identity in identities])


def _present(config: RunConfig, identity: Identity,
             figures: Path | str | None) -> dict[str, Any] | None:
    """The row of a run that ended: committed, or finished in the store."""
    row = committed(config, identity, figures)
    if row is None and (found := RunStore().result(identity.run)) and is_complete(found):
        row = add_row(config, identity, found, figures)
    return row


def _train(missing: dict[str, tuple[RunConfig, Identity]], executor: Executor,
           root: Path | str | None, figures: Path | str | None,
           device: str) -> dict[str, dict[str, Any]]:
    """Rows of the runs, trained now. Features are encoded here first, not by every worker."""
    for config in {data_part(config): config for config, _ in missing.values()}.values():
        encoded_data(config, root, str(choose_device(device)))
    by_config = {config.model_dump_json(): identity for config, identity in missing.values()}
    rows = {}
    try:
        for config, identity in missing.values():
            if (RunStore().status(identity.run) or {}).get("state") != "running":
                RunStore().set_status(identity.run, "queued")
            executor.submit(config)
        for answer in progress(executor.answers(), "runs", len(missing)):
            identity = by_config[answer.config.model_dump_json()]
            rows[identity.run] = _row(answer, identity, figures)
    except BaseException:
        close_workers()
        executor.close()
        raise
    return rows


def _row(answer: Any, identity: Identity, figures: Path | str | None) -> dict[str, Any]:
    result = RunStore().result(identity.run) if answer.state in ENDED else None
    if result is not None:
        return add_row(answer.config, identity, result, figures)
    state, reason = answer.state, answer.reason
    if state in ENDED:
        state, reason = "failed", "it ended under another id: restart Python, the code has changed"
    RunStore().set_status(identity.run, state, reason)
    return about(answer.config, identity.run, state, reason) | knobs(answer.config)


def _report(rows: Sequence[dict[str, Any]]) -> None:
    """Say on stderr what did not end well."""
    for row in rows:
        if row["status"] != "done":
            print(f"run {row['run']} ({row['model']}, seed {row['seed']}): {row['status']}: "
                  f"{row['reason']}", file=sys.stderr, flush=True)


def _executor(workers: int, root: Path | str | None, device: str) -> Executor:
    if workers < 1:
        return Here(root, device)
    key = (workers, str(home()), str(root), device)
    if key not in _kept:
        close_workers()
        _kept[key] = Workers(workers, root, device)
    return _kept[key]


@atexit.register
def close_workers() -> None:
    """End the workers that are kept for the next sweep; Python's end does it too."""
    while _kept:
        _kept.popitem()[1].close()
