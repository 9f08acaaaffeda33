"""Committed rows that no notebook asks for are set aside, and no others."""

import dataclasses

import pytest

from itr_study.data import DATASETS
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import figures_folder
from itr_study.runs.identity import identify
from itr_study.runs.rows import Rows
from itr_study.studies import unasked
from itr_study.studies.arms import ArmRun
from tests.small_runs import SMALL


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """Five rows: of seed 0 and 1, which two profiles ask for; three that none does, one of them of
    edition 2."""
    def plan(dataset, profile):
        return [ArmRun("a", SMALL.with_(seed={"smoke": 0, "quick": 1, "full": 0}[profile]))]

    monkeypatch.setattr(unasked, "PLANS", {"00_a": plan})
    monkeypatch.setitem(DATASETS, "scenes",
                        dataclasses.replace(DATASETS["scenes"], generated=False))
    monkeypatch.setattr(unasked, "identify", lambda config, root, figures: identify(config))
    lines = [f"{identify(SMALL.with_(seed=seed)).id},done,{edition}"
             for seed, edition in ((0, ""), (1, ""), (2, ""), (3, "1"), (4, "2"))]
    text = "\n".join(["run,status,edition", *lines]) + "\n"
    write_atomic(tmp_path / "scenes" / "runs.csv", text.encode())
    return tmp_path


def test_rows_of_edition_1_that_no_profile_asks_for_are_set_aside(figures, store):
    expected = sorted(identify(SMALL.with_(seed=seed)).id for seed in (2, 3))
    assert unasked.unasked("scenes", figures) == unasked.set_aside("scenes", figures) == expected
    table = Rows(figures / "scenes")
    assert sorted(table.aside.read()) == expected and len(table.read()) == 3
    assert unasked.set_aside("scenes", figures) == [] and len(table.all()) == 5


def test_without_rows_there_is_nothing_to_set_aside(tmp_path):
    with pytest.raises(ValueError, match="no rows are kept in .*coco; there is nothing"):
        unasked.set_aside("coco", tmp_path)


@pytest.mark.evidence
def test_every_committed_row_of_flickr8k_is_asked_for_or_aside():
    table = Rows(figures_folder() / "flickr8k")
    assert unasked.unasked("flickr8k") == []
    aside = table.aside.read()
    assert aside and not aside.keys() & table.read().keys()
    for run_id in aside:
        assert table.complete(run_id) and not list(table.folder.glob(f"*/{run_id}.*"))
    for run_id in table.read():
        for kept in (f"curves/{run_id}.csv", f"ranks/{run_id}.npz"):
            assert (table.folder / kept).is_file()
