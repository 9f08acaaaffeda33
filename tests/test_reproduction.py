"""After a batch the gallery is made anew, and a figure that is not whole is told."""

import pytest

from itr_study import reproduction
from itr_study.batch import NotebookResult
from itr_study.reproduction import Request
from tests.plots.test_figures import save
from tests.small_notebooks import write_notebook


@pytest.fixture
def batch(tmp_path, store, monkeypatch):
    """A request for one notebook, with the way it ended."""
    def make(status: str, promised: list[str]) -> Request:
        path = write_notebook(tmp_path / "03_topk.ipynb", figures=promised)
        monkeypatch.setattr(reproduction, "reproduce", lambda *_: [
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
