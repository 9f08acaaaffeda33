"""One notebook in a process of its own, with its true status.

done; failed (a cell raised); kernel-died (killed, often for memory); timeout; interrupted (the
batch was stopped); busy (being executed by another batch). Only done counts as success.

The process is `python -m itr_study.lab.batch.execute TASK.json`. Its verdict is written last;
without one it was killed. The status that papermill leaves in the notebook is not used: after a
kernel's death it calls every cell completed.
"""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout

from itr_study.files.atomic import read_json, write_json
from itr_study.lab.batch.declared import Notebook, read_notebook
from itr_study.lab.processes import KEEP_MEMORY, MARK, end_with_parent, kill_marked, new_mark

POLL = 0.1  # seconds between looks at a running notebook
# A line of its log that says how far something is (see `progress`), and what that is.
COUNTED = re.compile(r"[\d:]{8} ((.+): \d+( of \d+)?.*, \d+ s.*)")
SAID_AGAIN = 300.0  # seconds after which the same step is said again
LONGEST_MESSAGE = 400  # characters
Say = Callable[[str], None]


@dataclass(frozen=True)
class NotebookResult:
    """How one notebook ended; `output` is the executed notebook, partial unless done."""

    notebook: str
    status: str
    minutes: float
    message: str = ""
    output: Path | None = None


def run_notebook(path: Path | str, parameters: Mapping[str, Any], output: Path | str,
                 timeout: float | None = None, threads: int | None = None,
                 stop: threading.Event | None = None,
                 say: Say = lambda step: None) -> NotebookResult:
    """Execute one notebook with parameters; nothing it started survives this call.

    Args:    output: written only when every cell ran; until then `<stem>.partial.ipynb`, a log
             and at the end `<stem>.status.json` lie beside it. timeout: seconds of wall clock;
             threads: of numerical libraries in the kernel; stop: set it to end early; say: gets
             what takes long in it: "encoding flickr8k with minilm: 3 of 9, 40 s, about 80 s left".
    Raises:  ValueError before any kernel starts, for an unknown parameter or a wrong type.
    """
    notebook, output = read_notebook(path), Path(output).resolve()
    notebook.check(parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        with FileLock(f"{output}.lock", timeout=0):
            status, message = _execute(notebook, dict(parameters), output, timeout, threads,
                                       stop or threading.Event(), say)
            final = output if status == "done" else output.with_suffix(".partial.ipynb")
            result = NotebookResult(notebook.name, status, (time.monotonic() - start) / 60,
                                    message, final if final.exists() else None)
            write_json(output.with_suffix(".status.json"), asdict(result) | {
                "output": str(final), "parameters": dict(parameters)})
    except Timeout:
        return NotebookResult(notebook.name, "busy", 0.0, "another batch is executing it: wait "
                              f"for that one, or see {output.with_suffix('.log')}")
    return result


def _execute(notebook: Notebook, parameters: dict, output: Path, timeout: float | None,
             threads: int | None, stop: threading.Event, say: Say) -> tuple[str, str]:
    """Run the child and wait for it; (status, message). The output is renamed into place."""
    partial, log = output.with_suffix(".partial.ipynb"), output.with_suffix(".log")
    mark = new_mark()
    partial.unlink(missing_ok=True)
    environment = os.environ | {MARK: mark} | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    with tempfile.TemporaryDirectory(prefix="itr_study-") as scratch, open(log, "wb") as written, \
            open(log, encoding="utf-8", errors="replace") as told:
        task, verdict = Path(scratch) / "task.json", Path(scratch) / "verdict.json"
        write_json(task, {"notebook": str(notebook.path.resolve()), "output": str(partial),
                          "parameters": parameters, "parent": os.getpid()})
        command = [sys.executable, "-m", "itr_study.lab.batch.execute", str(task)]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=written, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            early = _wait(child, timeout, stop, Steps(told, say))
        finally:
            kill_marked(mark)
            child.wait()
        if not verdict.exists():
            return early or ("kernel-died", f"its process ended with code {child.returncode}: see "
                             "the log")
        values = read_json(verdict)
    if values["status"] == "done":
        with open(partial, "r+b") as file:  # Windows flushes only what is writable
            os.fsync(file.fileno())
        os.replace(partial, output)
    return values["status"], values["message"]


class Steps:
    """What takes long in a running notebook, by its log: said when new, and every five minutes."""

    def __init__(self, log: TextIO, say: Say) -> None:
        self.log, self.say = log, say
        self.part, self.step, self.said = "", "", 0.0  # part: of a line that is being written

    def look(self) -> None:
        """Say what is new in the log."""
        *lines, self.part = (self.part + self.log.read()).split("\n")
        for found in filter(None, map(COUNTED.fullmatch, lines)):
            if found[2] != self.step or time.monotonic() - self.said > SAID_AGAIN:
                self.step, self.said = found[2], time.monotonic()
                self.say(found[1])


def _wait(child: subprocess.Popen, timeout: float | None, stop: threading.Event,
          steps: Steps) -> tuple[str, str] | None:
    """None when the child ended by itself, else why it must be ended."""
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    while child.poll() is None:
        steps.look()
        if stop.is_set():
            return "interrupted", "the batch was stopped"
        if time.monotonic() > end:
            return "timeout", f"longer than {timeout / 60:.3g} minutes: raise --timeout"
        stop.wait(POLL)
    return None


# The process of a notebook, beside its kernel.

def main(path: Path) -> None:
    """Execute the notebook of a task, and write how it went beside that."""
    task = read_json(path)
    end_with_parent(task["parent"])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    folder = path.parent / "jupyter"
    for name in ("runtime", "config", "ipython"):
        (folder / name).mkdir(parents=True)
    # The kernel is kept off the user's own Jupyter and IPython folders.
    os.environ.update(KEEP_MEMORY | {
        "JUPYTER_PATH": str(folder), "JUPYTER_DATA_DIR": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "IPYTHONDIR": str(folder / "ipython"),
        "ITR_STUDY_HEADLESS": "1", "TOKENIZERS_PARALLELISM": "false"})
    make_kernelspec(folder)
    try:
        status, message = _by_papermill(task)
    except Exception as error:  # the verdict must say why, whatever it was; the log has the rest
        logging.exception("the notebook could not be executed")
        status, message = "failed", f"{type(error).__name__}: {error}"
    first = message.strip().splitlines()[0] if message.strip() else ""
    write_json(path.parent / "verdict.json", {"status": status, "message": first[:LONGEST_MESSAGE]})
    print(json.dumps({"status": status, "message": first}), flush=True)


def make_kernelspec(folder: Path) -> None:
    """Describe this very interpreter as the kernel `python3`, in a folder of its own."""
    write_json(folder / "kernels" / "python3" / "kernel.json", {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3", "language": "python",
        "metadata": {"supported_encryption": ["curve"]},
    })


def _by_papermill(task: dict) -> tuple[str, str]:
    """(status, message) of a notebook; "done" means that every cell ran."""
    # jsonschema reads this grammar of addresses for two seconds, and no notebook is checked by it
    sys.modules["rfc3987_syntax"] = None
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    from itr_study.lab.studies.needs import left_out

    try:
        executed = papermill.execute_notebook(
            task["notebook"].replace("{", "{{").replace("}", "}}"),  # papermill formats paths
            task["output"].replace("{", "{{").replace("}", "}}"),
            parameters=task["parameters"],
            kernel_name="python3",
            language="python",  # a notebook need not name a kernel
            cwd=str(Path(task["notebook"]).parent),
            start_timeout=300,  # seconds; a loaded machine is slow
            progress_bar=False,
            log_output=True,
            autosave_cell_every=30,
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    except DeadKernelError:
        return "kernel-died", "the kernel was killed, often for want of memory: try --workers 1"
    except PapermillExecutionError as error:
        return "failed", f"In [{error.exec_count}]: {error.ename}: {error.evalue}"
    if waiting := sum(c.cell_type == "code" and c.source.strip() != "" and c.execution_count is None
                      for c in executed.cells):
        return "failed", f"it stopped by itself with {waiting} cells not executed"
    return "done", left_out(["".join(output.get("text", "")) for cell in executed.cells
                             for output in cell.get("outputs", ())])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
