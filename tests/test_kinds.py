"""Every notebook on two kinds of data or more, and every kind in three notebooks, at smoke."""

from itertools import cycle

import pytest

from itr_study.files.paths import project_root
from itr_study.lab.batch.execute import run_notebook
from tests.fakes import KINDS, make

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9]*.ipynb"))
AT_LEAST = 3  # notebooks of each kind; as they go round, each notebook has two kinds or more
NEXT = cycle(NOTEBOOKS)
PAIRS = [(kind, next(NEXT)) for kind in KINDS for _ in range(AT_LEAST)]


@pytest.mark.slow
@pytest.mark.parametrize("kind, path", PAIRS, ids=lambda one: getattr(one, "stem", one))
def test_a_notebook_is_done_on_data_of_a_kind(kind, path, tmp_path, store):
    dataset, given = make(kind, tmp_path / "data")
    result = run_notebook(path, {
        "profile": "smoke", "dataset": dataset, "data": str(tmp_path / "data"), "workers": 1,
        "figures": str(tmp_path / "figures")} | given, tmp_path / path.name, timeout=900)
    assert result.status == "done", result.message


def test_each_notebook_has_two_kinds():
    assert all(sum(path == one for _, path in PAIRS) >= 2 for one in NOTEBOOKS)
