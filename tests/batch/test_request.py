"""How many notebooks run at once; after a batch the gallery is made anew, and what is not whole is
told."""

import os
from types import SimpleNamespace

import psutil
import pytest

from itr_study.batch import request
from itr_study.batch.execute import NotebookResult
from itr_study.batch.request import NOTEBOOK_BYTES, Request, side_by_side
from tests.cards import Card, put_in
from tests.plots.test_figures import save
from tests.small_notebooks import write_notebook


@pytest.fixture
def batch(tmp_path, store, monkeypatch):
    """A request for one notebook, with the way it ended."""
    def make(status: str, promised: list[str]) -> Request:
        path = write_notebook(tmp_path / "03_topk.ipynb", figures=promised)
        monkeypatch.setattr(request, "reproduce", lambda *_: [
            NotebookResult("03_topk", status, 0.1)])
        return Request([path], "scenes", "quick", {"figures": str(tmp_path / "figures")}, 1, 60, ())
    return make


def test_the_gallery_is_made_after_a_batch(batch, tmp_path, capsys):
    save(tmp_path / "figures")
    assert batch("done", ["03_topk__k_sweep"]).run() == 0
    page = (tmp_path / "figures" / "README.md").read_text()
    assert "scenes/03_topk__k_sweep.png" in page and "Gallery: " in capsys.readouterr().out


@pytest.mark.parametrize(("status", "promised"), [("failed", ["03_topk__k_sweep"]), ("done", [])])
def test_without_new_figures_the_page_stays_as_it_is(batch, tmp_path, status, promised):
    save(tmp_path / "figures")
    assert batch(status, promised).run() == (status == "failed")
    assert not (tmp_path / "figures" / "README.md").exists()


def test_a_figure_without_its_picture_is_told_and_makes_the_batch_fail(batch, tmp_path, capsys):
    save(tmp_path / "figures").unlink()
    assert batch("done", ["03_topk__k_sweep"]).run() == 1
    assert "The gallery was not made: figures without their files" in capsys.readouterr().out


@pytest.mark.parametrize(("cores", "free", "dataset", "expected"), [
    (2, 2 * NOTEBOOK_BYTES, "scenes", 2), (1, 2 * NOTEBOOK_BYTES, "scenes", 1),
    (2, 2 * NOTEBOOK_BYTES - 1, "scenes", 1), (2, 2 * NOTEBOOK_BYTES, "flickr8k", 1)])
def test_two_notebooks_run_side_by_side_where_there_is_room(cores, free, dataset, expected,
                                                            monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    assert side_by_side(dataset) == expected


def test_what_the_user_says_about_notebooks_at_once_holds(monkeypatch):
    monkeypatch.setattr(request, "side_by_side", lambda dataset: 2)
    for asked, expected in ((None, 2), (5, 5)):
        made = Request.make(["00_start_here"], "scenes", None, None, None, (), asked, None)
        assert made.workers == expected


def test_no_run_is_planned_of_a_notebook_that_is_for_other_data(tmp_path):
    """It is skipped, and so no hours are asked for either."""
    here, elsewhere = (write_notebook(tmp_path / f"{name}.ipynb", datasets=datasets)
                       for name, datasets in (("here", ["scenes"]), ("elsewhere", ["coco"])))
    asked = Request([here, elsewhere], "scenes", "quick", {}, 1, 60, ())
    assert asked.suiting() == [here]


def test_a_device_goes_to_the_notebooks_and_into_the_retry(monkeypatch, tmp_path):
    """The one that is taken anyway does not: a copy of a notebook from before has no such line."""
    put_in(monkeypatch, Card(), Card())
    made = Request.make(["00_start_here"], "scenes", None, None, None, (), 1, None, "cuda:1")
    assert made.parameters["device"] == "cuda:1"
    assert made.retry([NotebookResult("00_start_here", "failed", 0.1)]).endswith("--device cuda:1")
    older = write_notebook(tmp_path / "older.ipynb", parameters=(
        'profile: str = "quick"  # how much\ndataset: str = "scenes"  # which'))
    plain = Request.make([str(older)], "scenes", None, None, None, (), 1, None)
    assert "device" not in plain.parameters and "--device" not in plain.options
    given = Request.make(["00_start_here"], "scenes", None, None, None, ["device=cpu"], 1, None)
    assert given.parameters["device"] == "cpu"


@pytest.mark.parametrize("how", [{"device": "cuda:5"}, {"given": ["device=cuda:5"]}])
def test_a_device_that_is_not_here_is_refused_before_anything_starts(monkeypatch, how):
    put_in(monkeypatch, Card(), Card())
    with pytest.raises(ValueError, match="'cuda:5' is not here: there are cuda:0, cuda:1"):
        Request.make(["00_start_here"], "scenes", None, None, None, how.get("given", ()), 1, None,
                     how.get("device", "auto"))
