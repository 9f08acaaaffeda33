"""A process that executes runs one after another, each a line: `run.Job` in, `run.Answer` out.

    python -m itr_study.lab.runs.worker PARENT [FOLDER]    PARENT: id of the process to end with

FOLDER: where relative paths begin.

Importing torch and reading data cost seconds, so workers are kept and handed one run after another.
The line `stop` (STOP) ends it at once, on every system, and so does SIGTERM; a training saves
first. The end of stdin ends it after the jobs before.
Exit code: 0 at the end of stdin, 143 when stopped.
"""

import ctypes
import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import NoReturn

from itr_study.lab.processes import ancestor, end_with_parent, replace_letters

PR_SET_PDEATHSIG = 1
STOP = "stop\n"
STOPPED = 128 + signal.SIGTERM


def main(parent: int) -> int:
    """Answer jobs until stdin ends, or it is stopped; the exit code."""
    die_with(parent)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    jobs, stopped = SimpleQueue(), threading.Event()
    replace_letters("utf-8")  # as the log is read

    def stop(number: int, frame: object) -> None:
        """SIGTERM outside a training; during one, `fit` saves first."""
        stopped.set()
        raise KeyboardInterrupt("stopped outside a training; nothing was to be saved")

    # While torch is loaded nothing is to be saved, and an interrupt inside a library may be lost.
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(STOPPED))
    threading.Thread(target=listen, args=(jobs, stopped), daemon=True).start()
    try:
        from itr_study.lab.runs.run import attempt

        signal.signal(signal.SIGTERM, stop)
        while not stopped.is_set() and (job := jobs.get()):
            print(attempt(job), file=answers, flush=True)
    except KeyboardInterrupt as error:
        print(error, file=sys.stderr)
        return STOPPED
    return STOPPED if stopped.is_set() else 0


def listen(jobs: "SimpleQueue[str]", stopped: threading.Event) -> None:
    """Hand over the lines of stdin, "" at its end; STOP becomes the signal that trainings hear."""
    with open(0, encoding="utf-8", closefd=False) as lines:  # as jobs are written
        for line in iter(lines.readline, ""):
            if line == STOP:
                stopped.set()
                signal.raise_signal(signal.SIGTERM)
                break
            jobs.put(line)
    jobs.put("")


def die_with(parent: int) -> None:
    """End when the parent does: at once on Linux, within a second elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if ancestor(parent) is None:
        sys.exit(f"parent {parent} is gone already")
    end_with_parent(parent)


def run(parent: int) -> NoReturn:
    """Run `main`; exit with its code, which Python's exit may change, and wait for no thread."""
    code = main(parent)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    os.chdir(sys.argv[2] if sys.argv[2:] else ".")
    run(int(sys.argv[1]))
