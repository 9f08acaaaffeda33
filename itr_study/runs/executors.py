"""Where the runs of a sweep are executed: in worker processes, or right here.

An executor has `submit(config)`, `answers()` which yields one Answer per submitted config as they
end, and `close()`. One for many machines would have the same three.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from itr_study.files.paths import home, project_root
from itr_study.processes import MARK, new_mark
from itr_study.runs.config import RunConfig
from itr_study.runs.run import attempt

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# glibc gives every large buffer back to the system and asks for it again in the next step. Keeping
# them saves a recurrent model a quarter of its time where page faults are dear (virtual machines);
# other C libraries ignore these names, and no number depends on them.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**32),
               "MALLOC_TOP_PAD_": str(2**26)}
STOPPED = 128 + signal.SIGTERM  # exit code of a worker asked to stop
PATIENCE = 20.0  # seconds that a worker has to save when asked to stop


class Answer(NamedTuple):
    """How a run ended: a state of `store.STATES`, and the reason unless it is done."""

    config: RunConfig
    state: str
    reason: str


class Executor(Protocol):
    """What a sweep needs."""

    def submit(self, config: RunConfig) -> None: ...

    def answers(self) -> Iterator[Answer]: ...

    def close(self) -> None: ...


class Here:
    """Runs one after another in this process: no start-up, for a few short runs."""

    def __init__(self, root: Path | str | None = None, device: str = "auto"):
        self.root, self.device = root, device
        self.waiting: list[RunConfig] = []

    def submit(self, config: RunConfig) -> None:
        self.waiting.append(config)

    def answers(self) -> Iterator[Answer]:
        while self.waiting:
            config = self.waiting.pop(0)
            found = attempt(config, self.root, self.device)
            yield Answer(config, found.state, found.reason)

    def close(self) -> None:
        self.waiting.clear()


class Workers:
    """Runs in processes of their own, kept for the next sweep: start-up is paid once.

    Args:    count: processes, each with one thread; root: of real data; device: as in `fit`.

    A worker that dies (killed, out of memory) fails its run only; a new one takes the next. All
    end within seconds of this process, however it ends.
    """

    def __init__(self, count: int, root: Path | str | None = None, device: str = "auto"):
        self.command = [sys.executable, "-m", "itr_study.runs.worker", "-", "--device", device,
                        "--parent", str(os.getpid())]
        self.command += ["--root", str(Path(root).resolve())] if root is not None else []
        self.jobs: queue.Queue[RunConfig | None] = queue.Queue()
        self.done: queue.Queue[Answer] = queue.Queue()
        self.open, self.closing = 0, False
        self.workers: dict[int, Worker] = {}  # started when there is a job for them
        self.threads = [threading.Thread(target=self._serve, args=(number,), daemon=True)
                        for number in range(count)]
        for thread in self.threads:
            thread.start()

    def submit(self, config: RunConfig) -> None:
        self.open += 1
        self.jobs.put(config)

    def answers(self) -> Iterator[Answer]:
        while self.open:
            answer = self.done.get()
            self.open -= 1
            yield answer

    def close(self) -> None:
        """Stop everything: workers get time to save, then they are killed."""
        self.closing = True
        while not self.jobs.empty():
            self.jobs.get_nowait()
        for _ in self.threads:
            self.jobs.put(None)
        for worker in list(self.workers.values()):
            worker.end()
        for thread in self.threads:
            thread.join(timeout=PATIENCE)

    def _serve(self, number: int) -> None:
        """One thread looks after one worker; it lives as long, because Linux ends a child that
        asked for it when the thread that started it ends."""
        while (config := self.jobs.get()) is not None:
            try:
                worker = self.workers.get(number)
                if worker is None or worker.process.poll() is not None:
                    worker = self.workers[number] = Worker(self.command)
                answer = worker.ask(config)
            except Exception as error:  # no process, no memory: the sweep must hear of it
                answer = Answer(config, "failed", f"no worker: {type(error).__name__}: {error}")
            if self.closing:
                answer = Answer(config, "interrupted", "the sweep was stopped")
            self.done.put(answer)
        if number in self.workers:
            self.workers[number].end()


class Worker:
    """One process of `itr_study.runs.worker`, in a session of its own, and its log."""

    def __init__(self, command: list[str]):
        self.log = home() / "logs" / f"worker-{uuid.uuid4().hex[:8]}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = KEEP_MEMORY | os.environ | dict.fromkeys(THREADS, "1") | {
            "ITR_STUDY_HOME": str(home()), "ITR_STUDY_HEADLESS": "1", MARK: new_mark()}
        with open(self.log, "wb") as stderr:
            self.process = subprocess.Popen(command, env=environment, cwd=project_root(),
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=stderr, text=True, start_new_session=True)

    def ask(self, config: RunConfig) -> Answer:
        """Have a run executed; how it ended, also where the process ended with it."""
        try:
            self.process.stdin.write(config.model_dump_json() + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            found = json.loads(line)
            return Answer(config, found["state"], found["reason"])
        code = self.process.wait()
        stopped = code == STOPPED
        return Answer(config, "interrupted" if stopped else "failed", self._how_it_died(code))

    def _how_it_died(self, code: int) -> str:
        how = (f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else
               f"with code {code}")
        memory = (", which the system sends when memory runs out"
                  if -code == signal.SIGKILL else "")
        last = self.log.read_text(errors="replace").strip().splitlines()[-3:]
        said = f"; it said: {' / '.join(last)}" if last else ""
        return f"its worker ended {how}{memory}{said}; the whole log: {self.log}"

    def end(self) -> None:
        """SIGTERM, so that a training saves; SIGKILL to its group after a while."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
