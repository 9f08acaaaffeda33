"""A process that executes runs one after another: a line of stdin is a job, a line of stdout its
answer (see `jobs`).

    python -m itr_study.runs.worker PARENT      PARENT: id of the process to end with

Importing torch and reading data cost seconds, so workers are kept and handed one run after another.
Exit code: 0 at the end of stdin, 143 when stopped by SIGTERM; a training saves first.
"""

import ctypes
import os
import signal
import sys
from typing import TextIO

from itr_study.processes import ancestor, end_with_parent

PR_SET_PDEATHSIG = 1


def main(parent: int) -> int:
    """Answer jobs until stdin ends; the exit code."""
    die_with(parent)
    answers = separate_stdout()
    for stream in (sys.stdin, sys.stderr):  # as jobs are written and the log is read
        stream.reconfigure(encoding="utf-8")
    signal.signal(signal.SIGTERM, stop)
    try:
        from itr_study.runs.jobs import attempt  # loads torch: after the parent is watched

        for job in iter(sys.stdin.readline, ""):
            print(attempt(job), file=answers, flush=True)
    except KeyboardInterrupt as error:
        print(error, file=sys.stderr)
        return 128 + signal.SIGTERM
    return 0


def separate_stdout() -> TextIO:
    """A private copy of stdout for answers; whatever libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def stop(number: int, frame: object) -> None:
    """SIGTERM outside a training; during one, `fit` saves first."""
    raise KeyboardInterrupt("stopped outside a training; nothing was to be saved")


def die_with(parent: int) -> None:
    """End when the parent does: at once on Linux, within a second elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if ancestor(parent) is None:
        sys.exit(f"parent {parent} is gone already")
    end_with_parent(parent)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
