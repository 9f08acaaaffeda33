"""A real browser: the slider of a lesson moves its picture, and nothing is asked from elsewhere.

Needs Debian's `chromium` (or $CHROMIUM) and `pip install playwright`; skipped without them, failed
with ITR_REQUIRE_BROWSER=1.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest

from itr_study.files.paths import project_root
from itr_study.lab.cli.lab import lab_arguments, lab_environment
from tests.explorers.test_controls import CELL
from tests.posix import posix_only

pytestmark = [pytest.mark.browser, pytest.mark.slow, posix_only]
SECONDS = 120  # of patience, on a busy machine
PICTURE = ".jp-OutputArea-output img.jupyter-widgets"


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """JupyterLab as `itr-study lab` starts it, but on another folder; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--ServerApp.root_dir={folder}", f"--port={port}", "--no-browser", "--ip=127.0.0.1",
               "--allow-root", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    environment = {k: v for k, v in os.environ.items() if k != "ITR_STUDY_HEADLESS"}
    arguments = lab_arguments(project_root() / "my" / "first.ipynb", options)
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *arguments], env=environment | lab_environment(),
            stdout=output, stderr=output, cwd=folder)
        try:
            yield wait_for(f"http://127.0.0.1:{port}", process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def wait_for(address: str, process: subprocess.Popen, log: Path) -> str:
    """The address, once it answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urlopen(f"{address}/api", timeout=5).close()
            return address
        except (URLError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab does not answer: {log.read_text()[-2000:]}")


def test_a_slider_moves_its_picture(page, store, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)], metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3"}})
    nbformat.write(notebook, tmp_path / "slider.ipynb")
    with server(tmp_path) as address:
        page.goto(f"{address}/lab/tree/slider.ipynb")
        page.get_by_text("Python 3 | Idle").wait_for()
        assert page.get_by_text("official Jupyter news").count() == 0
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        page.get_by_text("Run All Cells", exact=True).click()
        picture = page.locator(PICTURE)
        picture.wait_for()
        before = picture.get_attribute("src")
        page.locator(".noUi-handle").press("ArrowRight")
        page.wait_for_function(
            "([css, before]) => { const shown = document.querySelector(css);"
            " return shown && shown.src != before }", arg=[PICTURE, before])
        assert picture.get_attribute("src").startswith("blob:")
        page.goto("about:blank")  # the kernel and the server end without anybody listening
