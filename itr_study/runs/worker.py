"""A process that executes runs one after another, each answered by one line of JSON on stdout.

    python -m itr_study.runs.worker run.json more.json --root DATA     configs from files
    python -m itr_study.runs.worker -                                  one config a line from stdin

Importing torch and reading data cost seconds, so a sweep keeps its workers and hands them runs.
Exit code: 0 when all are done, 1 when one is not, 143 when stopped by SIGTERM.
"""

import os

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
for _name in THREADS:  # libraries read it when they are imported
    os.environ[_name] = "1"

import argparse  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TextIO  # noqa: E402

from itr_study.processes import end_with_parent  # noqa: E402

PR_SET_PDEATHSIG = 1


def main(arguments: list[str] | None = None) -> int:
    """Execute the runs that the arguments name; the exit code."""
    options = read_arguments(arguments)
    if options.parent:
        die_with(options.parent)
    answers = separate_stdout()
    signal.signal(signal.SIGTERM, stop)
    states = []
    try:
        for text in configs(options.files):
            answer = run_one(text, options)
            states.append(answer["state"])
            print(json.dumps(answer), file=answers, flush=True)
    except KeyboardInterrupt as error:
        print(error, file=sys.stderr)
        return 128 + signal.SIGTERM
    return int(any(state != "done" for state in states))


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("itr_study.runs.worker", description="Execute runs.")
    parser.add_argument("files", nargs="+", help="JSON files of configs, or - for stdin")
    parser.add_argument("--root", help="folder of the real data sets")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--save-seconds", type=float, default=60.0,
                        help="least time between checkpoints")
    parser.add_argument("--parent", type=int, help="process id to end with")
    return parser.parse_args(arguments)


def configs(files: list[str]) -> Iterator[str]:
    """The texts of configs, each when it is asked for."""
    for name in files:
        if name == "-":
            yield from iter(sys.stdin.readline, "")
        else:
            yield Path(name).read_text(encoding="utf-8")


def run_one(text: str, options: argparse.Namespace) -> dict[str, str]:
    """Execute one config; how it ended."""
    from itr_study.runs.config import RunConfig
    from itr_study.runs.run import attempt

    try:
        config = RunConfig.model_validate_json(text)
    except ValueError as error:
        return {"state": "failed", "reason": str(error), "run": ""}
    return attempt(config, options.root, options.device, options.save_seconds)._asdict()


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
    if os.getppid() != parent:
        sys.exit(f"parent {parent} is gone already")
    end_with_parent(parent)


if __name__ == "__main__":
    sys.exit(main())
