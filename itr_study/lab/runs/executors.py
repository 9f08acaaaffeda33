"""Where the runs of a sweep are trained: here, in worker processes, or on many machines by Dask.

A thread keeps a worker process, so that start-up is paid once. One that dies (killed, out of
memory) fails its run only; the next run gets a new one. Workers end within seconds of their parent,
however it ends.

    sweep(configs, cluster="tcp://10.0.0.1:8786")      or cluster=client, any Client of Dask

All machines of a cluster share $ITR_STUDY_HOME, the data and the checkout, under the same paths.
What is sent is a `run.Job` and its short answer; rows, weights and checkpoints go to the shared
folder, so a run whose worker dies goes on elsewhere from its last checkpoint.
"""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from itr_study.data.base import DataError
from itr_study.files.paths import check_home, home, project_root
from itr_study.lab.processes import KEEP_MEMORY, MARK, kill_marked, new_mark
from itr_study.lab.runs.identity import digest, identify
from itr_study.lab.runs.run import Answer, Job
from itr_study.lab.runs.worker import STOP, STOPPED

if TYPE_CHECKING:
    from distributed import Client

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILLED = -9  # by SIGKILL, which Windows does not have
PATIENCE = 20.0  # seconds that a worker has to save when asked to stop
ANSWER, FIRST_WORKER = 10.0, 60.0  # seconds to wait for a scheduler, and for a worker
PACKAGE = Path(__file__).resolve().parents[2]
NEEDED = ("Dask is not installed: pip install 'itr-study[cluster]', here and where the workers are")


class ClusterError(ValueError):
    """There is no scheduler or no worker, or a worker that must not train; says what to do."""


class SerialExecutor(Executor):
    """Calls what is submitted at once, in this thread; its futures are done when returned."""

    def submit(self, fn: Callable, /, *arguments: Any, **named: Any) -> Future:
        """Call a function; its result, or its error, as a future."""
        future: Future = Future()
        try:
            future.set_result(fn(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


_thread = threading.local()  # .worker: the one that this thread keeps
_workers: weakref.WeakSet["Worker"] = weakref.WeakSet()  # those of all threads
_lock = threading.Lock()  # of _workers


def worker_of_thread() -> "Worker":
    """The worker process that this thread keeps, started anew where it has ended."""
    worker = getattr(_thread, "worker", None)
    if worker is None or not worker.serves():
        with _lock:
            worker = _thread.worker = Worker()
            _workers.add(worker)
    return worker


def run_in_worker(job: str) -> str:
    """Execute the run of a job in this thread's worker process; the answer."""
    worker = worker_of_thread()
    try:
        return worker.ask(job)
    except BaseException:  # Ctrl-C in a process of its own (`ProcessPoolExecutor`)
        worker.end()
        raise


def end_workers() -> None:
    """End the workers of all threads: trainings save first, their runs are "interrupted"."""
    with _lock:
        workers = list(_workers)
    for worker in workers:  # all are asked before the first is waited for
        worker.stop()
    for worker in workers:
        worker.end()


class Worker:
    """One process of `itr_study.lab.runs.worker`, in a session of its own, and its log.

    `end()` asks it to stop and waits, `stop()` only asks. At the latest it ends with the thread
    that started it: then Linux kills it.
    """

    def __init__(self) -> None:
        self.home, self.place = home(), os.getcwd()
        self.log = self.home / "logs" / f"worker-{uuid.uuid4().hex[:8]}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "itr_study.lab.runs.worker", str(os.getpid()), self.place]
        mark = new_mark()
        environment = KEEP_MEMORY | os.environ | dict.fromkeys(THREADS, "1") | {
            "ITR_STUDY_HOME": str(self.home), "ITR_STUDY_HEADLESS": "1", MARK: mark}
        with open(self.log, "wb") as stderr:
            self.process = subprocess.Popen(command, env=environment, cwd=project_root(),
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=stderr, encoding="utf-8",
                                            start_new_session=True)
        self.asked = threading.Event()  # to end
        self.end = weakref.finalize(self, _end, self.process, self.asked, mark)

    def serves(self) -> bool:
        """Whether it lives, works where this process does now, and keeps its runs there."""
        return self.process.poll() is None and (self.home, self.place) == (home(), os.getcwd())

    def stop(self) -> None:
        """Ask it to end: a training saves first."""
        _ask_to_end(self.process, self.asked)

    def ask(self, job: str) -> str:
        """Have a job done; the answer, also where the process ended instead of answering."""
        try:
            self.process.stdin.write(job + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except (OSError, ValueError):  # of a pipe that is broken, or closed: it ends
            answer = ""
        if answer:
            return answer
        code = self.process.wait()
        how = (f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else
               f"with code {code}")
        memory = ", which the system sends when memory runs out" * (code == KILLED)
        text = self.log.read_text(encoding="utf-8", errors="replace").strip()
        output = f"; it said: {' / '.join(text.splitlines()[-3:])}" * bool(text)
        # by a signal from elsewhere it is ended before Python is ready to end itself
        stopped = code in (STOPPED, -signal.SIGTERM)
        reason = f"its worker ended {how}{memory}{output}; the whole log: {self.log}"
        return Answer(state="interrupted" if stopped else "failed", reason=reason).model_dump_json()


def _ask_to_end(process: subprocess.Popen, asked: threading.Event) -> None:
    """Send the worker STOP, once: asked twice, it would stop without saving."""
    if not asked.is_set():
        asked.set()
        with suppress(OSError, ValueError):  # its pipe is closed: it has ended
            process.stdin.write(STOP)
            process.stdin.close()


def _end(process: subprocess.Popen, asked: threading.Event, mark: str) -> None:
    """Ask it to end, and wait; after a while it is killed with all that it started."""
    _ask_to_end(process, asked)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()  # before others wait for it: its exit code is told once
        kill_marked(mark)


class Cluster(Executor):
    """Sends runs to the workers of a Dask scheduler.

    Args:   client: a Client, or the address of a scheduler.
    Raises: ClusterError: Dask is not installed, or nobody answers there.
    """

    def __init__(self, client: "Client | str") -> None:
        try:
            from distributed import Client
            from distributed.comm import get_address_host_port
        except ImportError as error:
            raise ClusterError(NEEDED) from error
        if not isinstance(client, str | Client) or client == "" or str(client).isspace():
            raise ClusterError("cluster must be a Client of Dask or the address of a scheduler, "
                               f"such as tcp://127.0.0.1:8786; got {client!r}")
        if isinstance(client, str):
            try:  # first whether anybody is there: a Client that finds nobody hangs at its end
                if not client.startswith("inproc:"):
                    socket.create_connection(get_address_host_port(client), ANSWER).close()
                client = Client(client, timeout=ANSWER, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ClusterError(
                    f"no Dask scheduler answers at {client}: {error}. Start one, as "
                    "`itr-study cluster --local 2` or `dask scheduler` do, and give its address"
                ) from error
        self.client = client
        self.first, self.expected = "", ""  # a job, and what its numbers depend on
        self.sent: dict[str, Any] = {}  # futures of Dask by key, until they are done

    def submit(self, fn: object, /, job: str) -> Future:  # type: ignore[override]
        """Send a run, a `run.Job` as JSON; what is called there is `train_there`.

        Raises: ClusterError: as `check_workers`, at the first run.
        """
        if not self.first:
            self.expected, self.first = json.dumps(check_workers(self.client, job)), job
        key, answer = f"itr_study-{digest(job)}", Future()
        sent = self.sent[key] = self.client.submit(
            train_there, key, job, self.first, self.expected, key=key, pure=False)
        sent.add_done_callback(lambda done: self._relay(key, done, answer))
        return answer

    def _relay(self, key: str, done: Any, answer: Future) -> None:
        """Hand the answer of a task on, or why there is none."""
        self.sent.pop(key, None)
        if not answer.set_running_or_notify_cancel():  # the sweep has ended
            return
        try:
            answer.set_result(done.result())
        except CancelledError:  # nobody here has cancelled it
            answer.set_exception(ClusterError(
                f"the Dask scheduler at {self.client.scheduler.address} is gone. Runs that ended "
                "are kept: start it again, and repeat the command"))
        except Exception as error:
            answer.set_exception(error)

    def end_runs(self) -> None:
        """Take back what waits; ask what trains to save and end, and wait for it."""
        keys, end = list(self.sent), time.monotonic() + PATIENCE
        # If the scheduler is gone, so are they; Dask says so by many errors.
        with suppress(OSError, ValueError, RuntimeError, CancelledError):
            self.client.cancel(list(self.sent.values()))
            while any(self.client.run(stop_there, keys).values()) and time.monotonic() < end:
                time.sleep(0.2)


def serve(count: int) -> None:
    """Run a scheduler with workers on this machine, and print its address, until interrupted.

    Raises: ClusterError: Dask is not installed.
    """
    try:
        from distributed import LocalCluster
    except ImportError as error:
        raise ClusterError(NEEDED) from error
    # Dask ends a worker near its limit of memory without a word; ours report.
    with LocalCluster(n_workers=count, threads_per_worker=1, memory_limit=0,
                      dashboard_address=None) as local, suppress(KeyboardInterrupt):
        print(f"{count} workers, until Ctrl-C, at {local.scheduler_address}", flush=True)
        threading.Event().wait()


_connected: dict[str, Cluster] = {}


def connect(address: str) -> Cluster:
    """Connect to a scheduler, once in this process, and again if it was gone."""
    if address not in _connected or _connected[address].client.status != "running":
        _connected[address] = Cluster(address)
    return _connected[address]


def check_workers(client: "Client", job: str) -> dict[str, str]:
    """Refuse workers that would not train this job as this process does, by name.

    Returns: what its numbers depend on, which workers that come later are asked for, too.
    Raises: ClusterError: a worker has another Python, torch or checkout, other data or another
        $ITR_STUDY_HOME; there is none.
    """
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER)
    except TimeoutError as error:
        address = client.scheduler.address
        raise ClusterError(f"the Dask scheduler at {address} has no worker: start some, as "
                           f"`dask worker {address} --nthreads 1` does") from error
    check_home()
    probe = home() / f"probe-{uuid.uuid4().hex}"
    probe.write_text("")
    try:
        expected = describe(job)
        homes = client.run(holds, probe.name, on_error="return")
        there = client.run(describe, job, on_error="return")
    finally:
        probe.unlink()
    for address, told in there.items():
        if not isinstance(told, dict):
            raise ClusterError(f"the Dask worker {address} cannot run itr_study: {told!r}; install "
                               "it there, of the same checkout")
        if other := difference(expected, told) or homes[address]:
            raise ClusterError(f"the Dask worker {address} {UNLIKE.format(other)}")
    return expected


UNLIKE = ("would not train as this process does ({}). All machines need the same versions and "
          "checkout, and share the data and ITR_STUDY_HOME under the same paths; then start that "
          "worker again")


def difference(expected: dict[str, str], told: dict[str, str]) -> str:
    """Say what differs first, "" if nothing does."""
    return next((f"{name} is {told.get(name)}, expected {value}" for name, value in expected.items()
                 if told.get(name) != value), "")


def holds(name: str) -> str:
    """Say that ITR_STUDY_HOME of this process does not hold a file, "" if it does."""
    shared = (home() / name).is_file()
    return "" if shared else f"ITR_STUDY_HOME is {home()}, expected that of the sweep"


def describe(job: str) -> dict[str, str]:
    """Describe what the numbers of a job depend on in this process."""
    asked = Job.model_validate_json(job)
    told = {"Python": ".".join(platform.python_version_tuple()[:2]), "torch": torch.__version__,
            "checkout": digest("".join(path.read_text("utf-8")
                                       for path in sorted(PACKAGE.rglob("*.py"))))}
    try:
        run = identify(asked.config, asked.root)
    except (DataError, OSError) as error:
        return told | {"data": str(error)}
    return told | {"data": run.data, "run id": run.id}


@cache
def fault(first: str, expected: str) -> str:
    """Say what differs in this process, once: it may have come after `check_workers`."""
    return difference(json.loads(expected), describe(first)) if expected else ""


# What Dask calls on its workers.

_at_work: dict[str, Worker] = {}  # of this process, by key


def train_there(key: str, job: str, first: str = "", expected: str = "") -> str:
    """Execute the run of a job in a process of this thread of a Dask worker; the answer.

    Were it trained in the Dask worker itself, its heartbeat would stop, and Dask would give it up.
    """
    if other := fault(first, expected):
        return Answer(state="failed", reason=f"the Dask worker on {platform.node()} "
                      f"{UNLIKE.format(other)}").model_dump_json()
    os.environ.update(KEEP_MEMORY)  # Dask sets one of these for its workers, which slows training
    worker = _at_work[key] = worker_of_thread()
    try:
        return worker.ask(job)
    finally:
        del _at_work[key]


def stop_there(keys: list[str]) -> bool:
    """Ask the runs with these keys to save and end; whether some are still at work."""
    running = [worker for key, worker in list(_at_work.items()) if key in keys]
    for worker in running:
        worker.stop()
    return bool(running)
