"""Every notebook on a kind of data that is not ours, at smoke."""

import os
from itertools import cycle

import pytest

from itr_study.files.paths import project_root
from itr_study.lab.batch.execute import run_notebook
from tests.fakes import KINDS, make

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9]*.ipynb"))
# Each notebook on one kind, each kind at least once; with ITR_ALL_KINDS=1 each kind in three
# notebooks, which takes 15 minutes more.
AT_LEAST = 3 if os.environ.get("ITR_ALL_KINDS") else 1
EVERY = [kind for kind in KINDS for _ in range(AT_LEAST)]
PAIRS = [*zip(EVERY, cycle(NOTEBOOKS), strict=False),
         *zip(cycle(KINDS), NOTEBOOKS[len(EVERY):], strict=False)]


@pytest.mark.slow
@pytest.mark.parametrize("kind, path", PAIRS, ids=lambda one: getattr(one, "stem", one))
def test_a_notebook_is_done_on_data_of_a_kind(kind, path, tmp_path, store):
    dataset, given = make(kind, tmp_path / "data")
    result = run_notebook(path, {
        "profile": "smoke", "dataset": dataset, "data": str(tmp_path / "data"), "workers": 1,
        "figures": str(tmp_path / "figures")} | given, tmp_path / path.name, timeout=900)
    assert result.status == "done", result.message


def test_each_notebook_has_a_kind():
    assert {path for _, path in PAIRS} == set(NOTEBOOKS) and {kind for kind, _ in PAIRS} == {*KINDS}
