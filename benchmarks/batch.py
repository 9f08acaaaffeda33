"""Where the minutes of a headless batch go: `itr-study reproduce` on scenes, from nothing.

    python benchmarks/batch.py [--profile quick --workers 2 --notebooks 00_start_here ...]

Runs the command in an empty store with an empty folder of figures and reads when each cell of the
executed notebooks began and ended. A cell counts as what it asks for: training (runs of arms; a
first one encodes the data, too), drawing (figures saved), else other work; starting is what is left
of a notebook's minutes: the process, the kernel, and the imports of its first cell. Encoding is
measured once more by itself, in a store of its own. Notebooks that run side by side share the
cores, so their minutes add up to more than those of the batch; the CPU minutes of their processes
(column cpu), and of all by what they are, say what there is to do at all, on a busy machine too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pandas as pd
import psutil

PROCESSES = {"itr_study.lab.runs.worker": "workers that train",
             "ipykernel_launcher": "kernels of notebooks",
             "itr_study": "the batch and papermill"}  # part of the command line -> what it is
CHILD = "itr_study.lab.batch.execute"  # executes one notebook
KINDS = ("training", "drawing", "other", "starting")
ENCODE = """
import sys, time
from itr_study.lab.runs.data import data_part, encoded_data
from itr_study.lab.studies.plans import PLANS
arms = (arm for name in PLANS for arm in PLANS[name]("scenes", sys.argv[1]))
configs = {data_part(arm.config): arm.config for arm in arms}
start = time.monotonic()
for config in configs.values():
    encoded_data(config)
print(time.monotonic() - start)
"""


def command(code: list[str], home: Path) -> tuple[int, str, pd.DataFrame]:
    """A command of this interpreter with a store of its own: its exit code, what it printed, and
    a line a process: kind, notebook ("" of none) and CPU minutes, as last seen (looked at every
    half second)."""
    used: dict[int, tuple[str, str, float]] = {}
    with tempfile.TemporaryFile("w+") as told:
        child = psutil.Popen([sys.executable, *code], stdout=told, stderr=subprocess.STDOUT,
                             env={**os.environ, "ITR_STUDY_HOME": str(home)})
        while child.poll() is None:
            for process in [child, *child.children(recursive=True)]:
                with suppress(psutil.Error, OSError):  # ended since
                    kind, notebook, _ = used.get(process.pid) or (*what(process, used), 0.0)
                    spent = process.cpu_times()
                    used[process.pid] = (kind, notebook, (spent.user + spent.system) / 60)
            time.sleep(0.5)
        told.seek(0)
        return child.returncode, told.read(), pd.DataFrame(
            used.values(), columns=["kind", "notebook", "minutes"])


def what(process: psutil.Process, known: dict[int, tuple]) -> tuple[str, str]:
    """What kind of process it is, and of which notebook: its own task, or that of its parent."""
    words = process.cmdline()
    kind = next((name for part, name in PROCESSES.items() if part in " ".join(words)), "other")
    if CHILD in words:
        return kind, Path(json.loads(Path(words[-1]).read_text())["notebook"]).stem
    return kind, known.get(process.ppid(), ("", ""))[1]


def kind_of(source: str) -> str:
    """What a cell asks for."""
    if re.search(r"\b(train|train_arms|weights)\(", source):
        return "training"
    return "drawing" if "save_figure(" in source or "plots." in source else "other"


def seconds(cell: dict) -> float:
    """Wall seconds of an executed cell."""
    told = cell["metadata"]["papermill"]
    begin, end = (datetime.fromisoformat(told[name]) for name in ("start_time", "end_time"))
    return (end - begin).total_seconds()


def parts_of(path: Path) -> dict[str, float]:
    """Minutes of an executed notebook by kind."""
    minutes = json.loads(path.with_suffix(".status.json").read_text())["minutes"]
    cells = [cell for cell in json.loads(path.read_text())["cells"]
             if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    found = dict.fromkeys(KINDS, 0.0)
    for cell in cells:
        source = "".join(cell["source"])
        if not source.startswith(("import ", "from ")):
            found[kind_of(source)] += seconds(cell) / 60
    found["starting"] = minutes - sum(found.values())
    return {"all": minutes, **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--workers", type=int, help="notebooks at once; default: the command's")
    parser.add_argument("--notebooks", nargs="*", default=[], help="default: all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="itr_study-batch-") as folder:
        home, figures = Path(folder) / "home", Path(folder) / "figures"
        asked = ["--workers", str(given.workers)] if given.workers else []
        begun, clock = time.time(), time.monotonic()
        code, told, used = command(
            ["-m", "itr_study", "reproduce", *given.notebooks, "--profile", given.profile,
             "--figures", str(figures), *asked, "--yes"], home)
        minutes = (time.monotonic() - clock) / 60
        print(told)
        executed = [path for path in sorted((home / "executed" / "scenes").glob("*.ipynb"))
                    if path.with_suffix(".status.json").exists()]  # done, not partial
        table = pd.DataFrame({path.stem: parts_of(path) for path in executed}).T
        table["cpu"] = used.groupby("notebook").minutes.sum()
        pictures = [path.stat().st_mtime for path in figures.glob("scenes/*.png")]
        print(table.to_string(float_format="{:.2f}".format))
        print(f"the batch: {minutes:.1f} minutes, {os.cpu_count()} cores, {len(pictures)} figures; "
              f"the first after {min(pictures, default=begun) - begun:.0f} s")
        by_kind = used.groupby("kind").minutes.sum()
        print(f"CPU minutes: {used.minutes.sum():.1f},",
              ", ".join(f"{value:.2f} {kind}" for kind, value in by_kind.items()))
        _, alone, _ = command(["-c", ENCODE, given.profile], Path(folder) / "alone")
        print(f"encoding, by itself: {float(alone.split()[-1]) / 60:.2f} minutes")
    return code


if __name__ == "__main__":
    sys.exit(main())
