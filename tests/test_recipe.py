"""The recipes of CONTRIBUTING.md: a dummy loss and a dummy data set touch the files named there."""

import re
import shutil
import subprocess
import sys

import pytest

from itr_study.files.paths import project_root

pytestmark = pytest.mark.slow

LOSS = '''"""A dummy."""

from torch import Tensor

from itr_study.losses._batch import negatives, over_matches, read_batch
from itr_study.losses.base import RankingLoss


class DummyLoss(RankingLoss):
    """Square the hinge on the hardest negative.

        L = mean over matches (i, t) of  [0.2 + max_u s_iu - s_it]+ ^ 2  +  the same over images

    Use: to try the recipe.
    See: triplet_hardest (not squared), topk (the mean of several).
    Source: none.
    Differs: not at all.

    Example:
        >>> import torch
        >>> round(DummyLoss()(torch.tensor([[0.5, 0.4]]), torch.tensor([[1.0, 0]])).item(), 4)
        0.01
    """

    name, display_name, version, relevance_scale = "dummy", "Dummy", 1, "binary"

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        scores, match = read_batch(scores, relevance, self.relevance_scale)
        others = negatives(scores, match)
        text, image = others.amax(1, keepdim=True), others.amax(0, keepdim=True)
        gap = (0.2 + text - scores).relu() ** 2 + (0.2 + image - scores).relu() ** 2
        return over_matches(gap, match, "mean")
'''
ORACLE = '''from tests.oracles.loops import per_match

HAND = [({}, [[0.5, 0.4]], [[1, 0]], (0.2 + 0.4 - 0.5) ** 2)]


def oracle(scores, relevance):
    gaps = [sum(max(0, 0.2 + max(others) - own) ** 2 for others in both if others)
            for own, *both in per_match(scores, relevance)]
    return sum(gaps) / max(1, len(gaps))
'''
DATA = '''"""A dummy: scenes by another name."""

from dataclasses import replace
from pathlib import Path

from itr_study.data.base import RetrievalDataset
from itr_study.data.base import DatasetRecord
from itr_study.data.scenes import load as scenes


def load(root: Path | str | None = None) -> RetrievalDataset:
    """Ten pictures for training, five each to choose and to test."""
    return replace(scenes.load(train=10, dev=5, test=5), name="dummy")


DUMMY = DatasetRecord("dummy", load, generated=True)
'''
DATA_TEST = '''from itr_study.data import load_dataset


def test_dummy():
    assert len(load_dataset("dummy").splits["train"].image_ids) == 10
'''


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def add_line(path, after, line):
    text = path.read_text()
    assert text.count(after) == 1, f"{path}: {after}"
    path.write_text(text.replace(after, after + line))


@pytest.fixture
def clone(tmp_path):
    """What git tracks, or would, in a new folder under git."""
    root, folder = project_root(), tmp_path / "clone"
    listed = run(root, "git", "ls-files", "-co", "--exclude-standard", "itr_study", "tests",
                 "tools", "pyproject.toml", ".gitignore")
    for name in listed.splitlines():
        if (root / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")
    return folder


def recipe(what):
    """Paths that CONTRIBUTING.md names in a recipe."""
    text = (project_root() / "CONTRIBUTING.md").read_text()
    part = re.search(rf"\*\*{what}\*\*(.*?)(\n- |The tests name)", text, re.S).group(1)
    found = re.findall(r"`([\w./<>]+/[\w./<>]+)`", part)
    return {path.replace("<name>", "dummy") for path in found}


def changed(folder):
    return {line[3:] for line in run(folder, "git", "status", "--porcelain", "-uall").splitlines()
            if line[1] != " "}


def test_a_loss_touches_what_the_recipe_names(clone):
    check = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
             "tests/losses/test_registry.py", "tests/test_golden.py", "-k",
             "dummy or registered or gone"]
    (clone / "itr_study/losses/dummy.py").write_text(LOSS)
    assert subprocess.run(check, cwd=clone, capture_output=True).returncode == 1  # not registered
    registry = clone / "itr_study/losses/__init__.py"
    add_line(registry, "from itr_study.losses.info_nce import InfoNCELoss\n",
             "from itr_study.losses.dummy import DummyLoss\n")
    add_line(registry, 'Parts("loss", (\n', "    DummyLoss,\n")
    assert subprocess.run(check, cwd=clone, capture_output=True).returncode == 1  # no oracle
    (clone / "tests/oracles/dummy.py").write_text(ORACLE)
    run(clone, sys.executable, "-m", "tests.golden.make")
    assert "passed" in run(clone, *check)
    assert changed(clone) == recipe("loss")


def test_a_data_set_touches_what_the_recipe_names(clone):
    (clone / "itr_study/data/dummy.py").write_text(DATA)
    registry = clone / "itr_study/data/__init__.py"
    add_line(registry, "    scenes.SCENES,\n", "    dummy.DUMMY,\n")
    registry.write_text(registry.read_text().replace(
        "from itr_study.data import cub, ", "from itr_study.data import cub, dummy, "))
    check = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/data",
             "-k", "dummy or tests_of_its_own"]
    assert subprocess.run(check, cwd=clone, capture_output=True).returncode == 1  # no test
    (clone / "tests/data/test_dummy.py").write_text(DATA_TEST)
    assert "passed" in run(clone, *check)
    assert changed(clone) == recipe("data set")
