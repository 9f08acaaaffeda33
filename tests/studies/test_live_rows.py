"""What is trained on real data where somebody watches stays beside the working copies."""

from pathlib import Path

import pandas as pd
import pytest

from itr_study.runs import shelves
from itr_study.runs.rows import Rows
from itr_study.studies.arms import ArmRun
from itr_study.studies.results import curves, ranks_of
from itr_study.studies.study import Study
from tests.explorers.live import live_kernel
from tests.small_runs import count_trainings, photos
from tests.studies.test_study import CELL

SESSION = """
from pathlib import Path
import pytest
from itr_study.files import paths
from tests.small_runs import photos
from tests.studies.test_study import CELL
paths.project_root = lambda: Path({root!r})
patch = pytest.MonkeyPatch()
from itr_study.studies.arms import ArmRun
from itr_study.studies.study import Study
runs = [ArmRun("k=1", photos(patch).with_(seed=seed)) for seed in {seeds}]
study = Study("03_topk", CELL | {{"dataset": "photos", "data": "anywhere", "figures": None}})
rows = study.train(runs)
assert len(study.curves(rows)) == 2 * len(runs) and all(
    len(study.ranks(row).i2t) == 10 for row in rows.to_dict("records"))
"""


def table(root: Path) -> dict:
    return Rows(root / "figures" / "photos").read()


@pytest.mark.slow
def test_a_live_session_adds_nothing_to_the_rows_of_the_project(store, tmp_path, monkeypatch):
    """In a kernel as JupyterLab starts one; a batch then adds what the store holds, untrained."""
    with live_kernel() as live:
        live.run(SESSION.format(root=str(tmp_path), seeds=[0, 1]))
    assert not (tmp_path / "figures").exists() and len(table(tmp_path / "my")) == 2
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)
    trainings = count_trainings(monkeypatch)
    (run,) = trained([ArmRun("k=1", photos(monkeypatch))])["run"]
    assert not trainings and list(table(tmp_path)) == [run]
    assert table(tmp_path)[run] == table(tmp_path / "my")[run]


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Where somebody watches: a project, and its reader's own folder."""
    monkeypatch.setattr(shelves, "in_notebook", lambda: True)
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)
    return tmp_path


def trained(runs: list[ArmRun], **cell) -> pd.DataFrame:
    return Study("03_topk", CELL | {"dataset": "photos", "data": "anywhere", "figures": None}
                 | cell).train(runs)


def test_rows_of_the_project_come_first(store, watched, tmp_path, monkeypatch):
    runs = [ArmRun("k=1", photos(monkeypatch).with_(seed=seed)) for seed in (0, 1)]
    trained(runs[:1], figures=watched / "figures")  # a batch had one of them
    assert len(table(watched)) == 1 and not (watched / "my").exists()
    trainings = count_trainings(monkeypatch)
    rows = trained(runs)
    assert trainings == [1] and len(table(watched)) == 1
    assert list(table(watched / "my")) == [rows["run"][1]]
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another store"))
    assert trained(runs)["run"].tolist() == rows["run"].tolist() and trainings == [1]
    (watched / "my" / "figures" / "photos" / "runs.csv").write_text(
        (watched / "figures" / "photos" / "runs.csv").read_text().replace("done", "diverged"))
    assert trained(runs[:1])["status"].tolist() == ["done"]


def test_what_lies_beside_a_row_is_read_from_where_the_row_is(store, watched, monkeypatch):
    """The reader's own row of a run may differ from one that the project gets later."""
    runs = [ArmRun("k=1", photos(monkeypatch))]
    rows = trained(runs)
    run = rows["run"][0]
    own = watched / "my" / "figures" / "photos" / "curves" / f"{run}.csv"
    own.write_text("epoch,loss\n1,0.5\n")
    assert curves(rows)["loss"].tolist() == [0.5]
    trained(runs, figures=watched / "figures")
    assert len(curves(rows)) == 2
    (watched / "my" / "figures" / "photos" / "ranks" / f"{run}.npz").write_bytes(b"damaged")
    assert len(ranks_of(rows.iloc[0].to_dict()).i2t) == 10
