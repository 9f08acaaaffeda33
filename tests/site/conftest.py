"""Node, and what the site needs: skipped without, failed with ITR_REQUIRE_SITE=1 as in CI."""

import importlib.util
import json
import os
import shutil
import subprocess

import pytest

from tools.site.build import HERE

RUN = """
const fs = require("fs"), [folder, script, given] = process.argv.slice(2);
const load = (name) => require(name.startsWith("node:") ? name : `${folder}/${name}.js`);
const input = JSON.parse(fs.readFileSync(given));
process.stdout.write(JSON.stringify(new Function("load", "input", script)(load, input)));
"""


def lacking(reason: str) -> None:
    (pytest.fail if os.environ.get("ITR_REQUIRE_SITE") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """Runs a script with an input in Node, beside the scripts of the site; what it returns."""
    program = shutil.which("node")
    if not program:
        lacking("no node: apt install nodejs")
    folder = tmp_path_factory.mktemp("node")
    (folder / "run.cjs").write_text(RUN)

    def run(script: str, given: object) -> object:
        (folder / "given.json").write_text(json.dumps(given))
        done = subprocess.run([program, folder / "run.cjs", HERE / "static", script,
                               folder / "given.json"], capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def sphinx():
    """Skips where the site cannot be built."""
    wanted = ("sphinx", "myst_nb", "furo", "sphinx-mathjax-offline", "sphinx_revealjs")
    absent = [name for name in wanted if importlib.util.find_spec(name) is None]
    if absent:
        lacking(f"no {', '.join(absent)}: pip install -r tools/site/requirements.lock")
