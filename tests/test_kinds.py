"""Every notebook on a kind of data that is not ours, at smoke."""

import os
from itertools import cycle

import pytest

from itr_study.files.paths import project_root
from itr_study.lab.batch.execute import run_notebook
from tests.fakes import KINDS, make

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9]*.ipynb"))
NEXT = cycle(NOTEBOOKS)
ALL = [(kind, next(NEXT)) for kind in KINDS for _ in range(3)]
# Each kind once; with ITR_ALL_KINDS=1 in three notebooks, each notebook on two kinds or more.
PAIRS = ALL if os.environ.get("ITR_ALL_KINDS") else ALL[1::3]


@pytest.mark.slow
@pytest.mark.parametrize("kind, path", PAIRS, ids=lambda one: getattr(one, "stem", one))
def test_a_notebook_is_done_on_data_of_a_kind(kind, path, tmp_path, store):
    dataset, given = make(kind, tmp_path / "data")
    result = run_notebook(path, {
        "profile": "smoke", "dataset": dataset, "data": str(tmp_path / "data"), "workers": 1,
        "figures": str(tmp_path / "figures")} | given, tmp_path / path.name, timeout=900)
    assert result.status == "done", result.message


def test_each_kind_is_in_and_each_notebook_has_two():
    assert {kind for kind, _ in PAIRS} == {*KINDS}
    assert all(sum(path == one for _, path in ALL) >= 2 for one in NOTEBOOKS)
