"""The process that executes one notebook: python -m itr_study.lab.batch.child TASK.json

Its verdict is written last; without one the process was killed. The status that papermill leaves
in the notebook is not used: after a kernel's death it calls every cell completed.
"""

import json
import os
import sys
from pathlib import Path

from itr_study.files.atomic import read_json, write_json
from itr_study.lab.processes import KEEP_MEMORY, end_with_parent

LONGEST_MESSAGE = 400  # characters


def execute(task: dict) -> tuple[str, str]:
    """Execute a notebook by papermill; (status, message). "done" means that every cell ran."""
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
    waiting = [c for c in executed.cells if c.cell_type == "code" and c.source.strip()
               and c.execution_count is None]
    if waiting:
        return "failed", f"it stopped by itself with {len(waiting)} cells not executed"
    return "done", left_out(["".join(output.get("text", "")) for cell in executed.cells
                             for output in cell.get("outputs", ())])


def make_kernelspec(folder: Path) -> None:
    """Describe this very interpreter as the kernel `python3`, in a folder of the batch's own."""
    write_json(folder / "kernels" / "python3" / "kernel.json", {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3", "language": "python",
        "metadata": {"supported_encryption": ["curve"]},
    })


def kernel_environment(folder: Path) -> dict[str, str]:
    """Variables that keep a kernel off the user's own Jupyter and IPython folders."""
    return {
        "JUPYTER_PATH": str(folder),
        "JUPYTER_DATA_DIR": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "ITR_STUDY_HEADLESS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        **KEEP_MEMORY,
    }


def main(path: Path) -> None:
    import logging

    task = read_json(path)
    end_with_parent(task["parent"])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    folder = path.parent / "jupyter"
    os.environ.update(kernel_environment(folder))
    for name in ("runtime", "config", "ipython"):
        (folder / name).mkdir(parents=True)
    make_kernelspec(folder)
    try:
        status, message = execute(task)
    except Exception as error:  # the verdict must say why, whatever it was; the log has the rest
        logging.exception("the notebook could not be executed")
        status, message = "failed", f"{type(error).__name__}: {error}"
    first = message.strip().splitlines()[0] if message.strip() else ""
    write_json(path.parent / "verdict.json", {"status": status, "message": first[:LONGEST_MESSAGE]})
    print(json.dumps({"status": status, "message": first}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
