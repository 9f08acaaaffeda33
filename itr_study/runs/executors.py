"""Where the runs of a sweep are executed: any executor of `concurrent.futures` will do.

What is submitted is `run_in_worker`: a job as JSON in, an answer as JSON out (see `jobs`). The
thread that calls it only waits: the run is executed by a worker process which that thread starts
and keeps, so that start-up is paid once. Threads here and tasks on a cluster serve alike
(`ThreadPoolExecutor(2)`, Dask's `Client.get_executor()`); machines must share the data and
$ITR_STUDY_HOME.

A worker that dies (killed, out of memory) fails its run only; the next run gets a new one. Workers
end within seconds of their parent, however it ends. An interrupt lets the runs save that wait in
threads of this process; other processes of this machine (`ProcessPoolExecutor`) get the signal with
it where it goes to all (Ctrl-C, the button of a notebook), and do the same. What another machine
runs goes on to its end: nobody tells it.
"""

import os
import signal
import subprocess
import sys
import threading
import uuid
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any

from itr_study.files.paths import home, project_root
from itr_study.processes import KEEP_MEMORY, MARK, kill_marked, new_mark
from itr_study.runs.jobs import Answer
from itr_study.runs.worker import STOP, STOPPED

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILLED = -9  # by SIGKILL, which Windows does not have
PATIENCE = 20.0  # seconds that a worker has to save when asked to stop


class SerialExecutor(Executor):
    """Calls what is submitted at once, in this thread; its futures are done when returned."""

    def submit(self, fn: Callable, /, *arguments: Any, **named: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


_thread = threading.local()  # .worker: the one that this thread keeps
_workers: weakref.WeakSet["Worker"] = weakref.WeakSet()  # those of all threads
_lock = threading.Lock()  # of _workers


def run_in_worker(job: str) -> str:
    """Execute the run of a job in this thread's worker process; the answer.

    Raises:  OSError where no process can be started; KeyboardInterrupt, after its run has saved.
    """
    worker = getattr(_thread, "worker", None)
    if worker is None or not worker.serves():
        with _lock:
            worker = _thread.worker = Worker()
            _workers.add(worker)
    try:
        return worker.ask(job)
    except BaseException:  # Ctrl-C in a process of its own (`ProcessPoolExecutor`)
        worker.end()
        raise


def end_workers() -> None:
    """End the workers of all threads: trainings save first and their runs are "interrupted"; a
    next run starts a new worker."""
    with _lock:
        workers = list(_workers)
    for worker in workers:  # all are asked before the first is waited for
        _ask_to_end(worker.process, worker.asked)
    for worker in workers:
        worker.end()


class Worker:
    """One process of `itr_study.runs.worker`, in a session of its own, and its log.

    `end()` asks it to stop and waits, `stop()` only asks; that is done at the latest when its
    thread ends, for Linux kills a child whose parent asked for it when the thread that started it
    ends.
    """

    def __init__(self) -> None:
        self.home = home()
        self.log = self.home / "logs" / f"worker-{uuid.uuid4().hex[:8]}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "itr_study.runs.worker", str(os.getpid())]
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
        """Whether it lives and keeps its runs where this process does now."""
        return self.process.poll() is None and self.home == home()

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
        return answer or self._how_it_ended().model_dump_json()

    def _how_it_ended(self) -> Answer:
        code = self.process.wait()
        how = (f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else
               f"with code {code}")
        memory = ", which the system sends when memory runs out" if code == KILLED else ""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        last_lines = text.strip().splitlines()[-3:]
        output = f"; it said: {' / '.join(last_lines)}" if last_lines else ""
        # by a signal from elsewhere it is ended before Python is ready to end itself
        stopped = code in (STOPPED, -signal.SIGTERM)
        return Answer(state="interrupted" if stopped else "failed",
                      reason=f"its worker ended {how}{memory}{output}; the whole log: {self.log}")


def _ask_to_end(process: subprocess.Popen, asked: threading.Event) -> None:
    """Send the worker STOP: a training saves first. Only once: asked twice, it would stop without
    saving."""
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
