"""Grids of runs: those that ended are read, the others are trained in worker processes.

    configs = [base("flickr8k", "two_branch", **{"objective.0.arguments.k": k, "seed": s})
               for k in (1, 2, 5) for s in range(3)]
    sweep(configs, root=DATA)       one row per config, in that order

Any executor of `concurrent.futures` will do: threads here, or the workers of a Dask scheduler
(`executors.Cluster`). What is submitted is `run_in_worker`: a `run.Job` in, an answer out, as JSON.

An interrupt lets the runs of this process and of a cluster save first; so do other processes of
this machine (`ProcessPoolExecutor`) that get the signal too (Ctrl-C, the button of a notebook).
"""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from itr_study.data.base import DataError
from itr_study.files.paths import check_home
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import absolute, data_part, encoded_data
from itr_study.lab.runs.executors import (
    Cluster,
    ClusterError,
    SerialExecutor,
    connect,
    end_workers,
    run_in_worker,
)
from itr_study.lab.runs.identity import Run, identify
from itr_study.lab.runs.rows import first_columns, hyperparameters, make_row
from itr_study.lab.runs.run import Answer, Job, attempt, ended
from itr_study.lab.runs.store import ENDED, RunStore
from itr_study.progress import counting, in_lines
from itr_study.training.devices import choose_device
from itr_study.training.state import epoch_note

if TYPE_CHECKING:
    from distributed import Client

LOOK = 0.5  # seconds between looks at how far the runs are


def sweep(configs: Iterable[RunConfig], *, workers: int = 2, root: Path | str | None = None,
          device: str = "auto", executor: Executor | None = None,
          cluster: "Client | str | None" = None,
          needs: Sequence[Collection[str]] | None = None, weights: bool = False) -> pd.DataFrame:
    """Give one row per config, in their order; train the runs that have not ended yet.

    A run that fails in any way does not stop the others: its row has its status and reason and no
    metrics, and it is reported at the end; the next sweep tries it again.

    Args:    workers: processes, 0 = in this one; root: folder of the real data; device: as
             in `fit`; executor: of `concurrent.futures`, instead of `workers` threads here; it is
             not shut down; cluster: a Client of Dask or the address of its scheduler, instead of
             both; default: what $ITR_STUDY_CLUSTER names; needs: of each config the measures that
             its row must have, of those that are `asked` (`evaluation.measures`): a run that ended
             without is evaluated again where its weights are, else trained again; weights: train
             those, too, whose row is published and whose model is not on this machine; their row
             stays.
    Raises:  KeyboardInterrupt, after the running ones have saved; of an `executor`, see above.
             ClusterError: as `executors.Cluster` and `check_workers`; its scheduler is gone.
    """
    runs = [identify(config, root) for config in configs]
    asked: dict[str, set[str]] = {}
    for run, names in zip(runs, needs or [()] * len(runs), strict=True):
        asked.setdefault(run.id, set()).update(names)
    rows = {run.id: ended(run, asked[run.id]) for run in runs}
    missing = {run.id: run for run in runs if (row := rows[run.id]) is None
               or weights and row["status"] == "done" and RunStore().result(run.id) is None}
    if missing:
        rows |= _train(missing, rows, asked, root, device, *_place(workers, executor, cluster))
        for row in (rows[run_id] for run_id in missing):
            if row["status"] != "done" or row["reason"]:  # it did not end well, or taught nothing
                print(in_lines(f"run {row['run']} ({row['model']}, seed {row['seed']}): "
                               f"{row['status']}: {row['reason']}"), file=sys.stderr, flush=True)
    return pd.DataFrame([rows[run.id] for run in runs])


def ended_row(config: RunConfig, root: Path | str | None = None,
              needs: Collection[str] = ()) -> dict[str, Any] | None:
    """Read the row of a run that has ended, published or in the store; nothing is trained.

    Args:    root, needs: as in `run.execute`.
    Returns: None, too, where the data is not here, and no run is published that was encoded so.
    Raises:  DataError where a root is given that does not hold the data.
    """
    try:
        run = identify(config, root)
    except DataError:
        if root is not None:
            raise
        return None
    return ended(run, needs)


def _place(workers: int, executor: Executor | None, cluster: "Client | str | None"
           ) -> tuple[Executor, Callable[[str], str]]:
    """An executor, and what to submit to it."""
    cluster = cluster or (None if executor else os.environ.get("ITR_STUDY_CLUSTER"))
    if cluster is not None:
        return connect(cluster) if isinstance(cluster, str) else Cluster(cluster), run_in_worker
    if executor is None and workers < 1:
        return SerialExecutor(), attempt
    return executor or _threads(workers), run_in_worker


@lru_cache(maxsize=1)
def _threads(count: int) -> Executor:
    """Threads kept for the next sweep with as many workers, because each keeps its worker."""
    return ThreadPoolExecutor(count)


def _train(missing: dict[str, Run], kept: Mapping[str, dict[str, Any] | None],
           asked: Mapping[str, Collection[str]], root: Path | str | None, device: str,
           executor: Executor, work: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """Rows by id of runs that are trained now; features are encoded here, not by each worker."""
    check_home()
    for run in {data_part(run.config): run for run in missing.values()}.values():
        encoded_data(run.config, root, str(choose_device(device)))
    store, rows, jobs = RunStore(), {}, {}
    for run_id, run in missing.items():
        jobs[run_id] = Job(config=run.config, root=absolute(root), device=device,
                           needs=sorted(asked[run_id])).model_dump_json()
        if store.state(run_id) != "running":
            store.set_status(run_id, "queued")
    watch = Watch(missing, store)
    with counting(*watch.counted) as show, \
            closing(_answers(jobs, executor, work, lambda: show(*watch.look(rows)))) as answers:
        for run_id, answer in answers:
            rows[run_id] = _answered_row(missing[run_id], answer, kept[run_id])
    return rows


def _answers(jobs: dict[str, str], executor: Executor, work: Callable[[str], str],
             meanwhile: Callable[[], None]) -> Iterator[tuple[str, Answer]]:
    """(run id, answer) as the runs end, `meanwhile` between; when closed it ends the workers."""
    waiting: dict[Future, str] = {}
    try:
        for run_id in _free_first(jobs):
            future = executor.submit(work, jobs[run_id])
            if future.done():  # by a SerialExecutor: told before the next run begins
                meanwhile()
                yield run_id, _answer(future)
            else:
                waiting[future] = run_id
        running = set(waiting)
        while running:
            meanwhile()
            done, running = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting[future], _answer(future)
    except BaseException:
        for future in waiting:
            future.cancel()
        getattr(executor, "end_runs", end_workers)()
        if wait(waiting, timeout=1).not_done:  # a worker was just being started
            end_workers()
        raise


def _free_first(run_ids: Iterable[str]) -> Iterator[str]:
    """The runs, last those that another process trains: waiting for it keeps a core idle."""
    store, taken = RunStore(), []
    for run_id in run_ids:
        if store.state(run_id) == "running":
            taken.append(run_id)
        else:
            yield run_id
    yield from taken


def _answer(future: Future) -> Answer:
    """The answer of a run whose future is done; a broken executor fails the run, not the sweep."""
    try:
        return Answer.model_validate_json(future.result())
    except ClusterError:
        raise
    except Exception as error:
        return Answer(state="failed", reason=f"no worker: {type(error).__name__}: {error}")


def _answered_row(run: Run, answer: Answer, kept: dict[str, Any] | None) -> dict[str, Any]:
    """The row of a run that was trained, also where that failed."""
    store, state, reason = RunStore(), answer.state, answer.reason
    if state in ENDED:
        if (result := store.result(run.id)) is not None:
            return kept or make_row(run, result)
        state, reason = "failed", (
            f"it ended under the id {answer.id}: restart Python, code or files of labels changed"
            if answer.id != run.id else
            f"its result is not in {store.folder}: the worker's ITR_STUDY_HOME is another")
    store.set_status(run.id, state, reason)
    return first_columns(run, state, reason) | hyperparameters(run.config)


class Watch:
    """The epochs of runs that other processes train; runs that are only measured have none."""

    def __init__(self, runs: Mapping[str, Run], store: RunStore) -> None:
        self.count, self.store = len(runs), store
        self.runs = {run_id: run for run_id, run in runs.items() if store.result(run_id) is None}
        self.before: dict[str, int] = {}  # epochs of each run when last looked at
        self.newest = ""  # what the epoch said that ended last

    @property
    def counted(self) -> tuple[str, int, str]:
        """What is done, and how many there are of what: arguments of `counting`."""
        if not self.runs:
            return "measuring", self.count, "runs"
        epochs = sum(run.config.settings.epochs for run in self.runs.values())
        also = " and measuring" * (len(self.runs) < self.count)
        return f"training{also}", epochs, "epochs"

    def look(self, ended: Collection[str]) -> tuple[int, str]:
        """Count the epochs or runs done, one that ended wholly; note what the last epoch gave."""
        if not self.runs:
            return len(ended), ""
        done = 0
        for run_id, run in self.runs.items():
            if run_id in ended:
                done += run.config.settings.epochs
                continue
            rows = self.store.epochs(run_id)
            if len(rows) > self.before.get(run_id, 0):
                self.newest = epoch_note(json.loads(rows[-1]))
            self.before[run_id] = len(rows)
            done += len(rows)
        return done, ", ".join(filter(None, [f"{len(ended)} of {self.count} runs", self.newest]))
