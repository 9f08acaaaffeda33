"""How many notebooks run at once; after a batch the gallery is made anew, and what is not whole is
told."""

import os
from types import SimpleNamespace

import psutil
import pytest

import itr_study as itr
from itr_study.files import paths
from itr_study.files.paths import evidence_folder
from itr_study.lab.batch import schedule
from itr_study.lab.batch.execute import NotebookResult
from itr_study.lab.batch.schedule import NOTEBOOK_BYTES, Request, side_by_side
from itr_study.lab.studies.timing import model_costs, timed_rows
from itr_study.plots.figures import EXAMPLES, SHOWN
from tests.cards import Card, put_in
from tests.plots.test_figures import TABLE, common, refuse, save
from tests.small_notebooks import write_notebook


@pytest.fixture
def batch(tmp_path, store, monkeypatch):
    """A request for one notebook, with the way it ended, and what it draws; of a project."""
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    path = write_notebook(tmp_path / "03_topk.ipynb", figures=["03_topk__k_sweep"])

    def make(status: str, draw=lambda: None, dataset: str = "scenes", **asked) -> Request:
        def executed(*_):
            draw()
            return [NotebookResult("03_topk", status, 0.1)]

        monkeypatch.setattr(schedule, "reproduce", executed)
        data = None if dataset == "scenes" else tmp_path
        return Request.make([str(path)], dataset, data, "full", asked.pop("figures", None),
                            (), 1, None, **asked)
    return make


def drawn(folder, dataset="scenes", **more):
    return lambda: save(folder, "full", dataset=dataset, **more)


def pages(folder) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for ending in ("index.html", "README.md")
                  for path in folder.rglob(ending))


def test_a_batch_ends_with_the_path_of_its_page(batch, tmp_path, capsys):
    assert batch("done", drawn(tmp_path / "figures")).run() == 0
    page = tmp_path / "figures" / "scenes" / "index.html"
    assert capsys.readouterr().out.endswith(f"Gallery: {page}\n")
    assert 'src="03_topk__k_sweep.png"' in page.read_text() and pages(tmp_path) == [
        "figures/scenes/index.html"]


def test_a_folder_that_is_given_has_its_own_page(batch, tmp_path):
    given = tmp_path / "mine"
    assert batch("done", drawn(given), figures=given).run() == 0
    assert pages(tmp_path) == ["mine/index.html"]


def test_of_real_data_it_says_what_differs_from_what_is_published(batch, tmp_path, capsys):
    own, published = tmp_path / "my" / "figures", tmp_path / "figures"

    def told(folder, **more):
        def draw():
            common(folder)
            drawn(folder, "flickr8k", **more)()
        assert batch("done", draw, "flickr8k").run() == 0
        return capsys.readouterr().out.splitlines()

    told(published)
    assert told(own)[-2:] == [f"Gallery: {own / 'index.html'}", "2 tables equal the published ones"]
    assert pages(tmp_path) == ["my/figures/index.html"]
    drawn(published, "flickr8k", name="03_topk__x")()
    drawn(published, "flickr8k", name="04_relevance__x")()  # of a notebook that was not executed
    first, *others = told(own, table=TABLE.assign(loss=9))[-3:]
    assert first.startswith("flickr8k/03_topk__k_sweep differs from the published one: row 1, loss")
    assert others == ["Published and not drawn here: flickr8k/03_topk__x",
                      "1 table equals the published one"]


def test_only_what_is_published_goes_to_the_page_that_git_keeps(batch, tmp_path, capsys):
    published = tmp_path / "figures"
    asked = batch("done", drawn(published, "flickr8k"), "flickr8k", publish=True)
    assert asked.parameters["figures"] == str(published) and asked.run() == 0
    assert capsys.readouterr().out.endswith(f"Gallery: {published / 'README.md'}\n")
    assert pages(tmp_path) == ["figures/README.md"]
    assert batch("done", drawn(published, name=SHOWN[0]), publish=True).run() == 0
    assert pages(tmp_path) == ["figures/README.md", "figures/scenes/index.html"]
    assert f"{EXAMPLES}/{SHOWN[0]}.png" in (published / "README.md").read_text()
    assert "(scenes/" not in (published / "README.md").read_text()


def test_to_publish_and_another_folder_are_refused_and_a_retry_publishes(batch, tmp_path):
    with pytest.raises(ValueError, match="leave the other folder of figures out, or --publish"):
        batch("done", publish=True, figures=tmp_path / "mine")
    assert batch("done", figures=tmp_path / "figures").publish  # the same by another name
    asked = batch("failed", publish=True)
    assert "--publish" in asked.retry([NotebookResult("03_topk", "failed", 0.1)]).split()


def test_without_new_figures_there_is_no_page(batch, tmp_path):
    assert batch("failed", drawn(tmp_path / "figures")).run() == 1
    write_notebook(tmp_path / "03_topk.ipynb", figures=[])
    assert batch("done", drawn(tmp_path / "figures")).run() == 0
    assert pages(tmp_path) == []


def test_a_figure_without_its_picture_is_told_and_makes_the_batch_fail(batch, tmp_path, capsys):
    assert batch("done", lambda: drawn(tmp_path / "figures")().unlink()).run() == 1
    assert "The gallery was not made: figures without their files" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_computed(batch, monkeypatch):
    monkeypatch.setattr(paths, "try_writing", refuse)
    with pytest.raises(OSError, match="scenes cannot be written: Read-only.*--figures FOLDER"):
        batch("done", lambda: pytest.fail("computed")).run()


@pytest.mark.parametrize(("cores", "free", "dataset", "expected"), [
    (2, 2 * NOTEBOOK_BYTES, "scenes", 2), (1, 2 * NOTEBOOK_BYTES, "scenes", 1),
    (2, 2 * NOTEBOOK_BYTES - 1, "scenes", 1), (2, 2 * NOTEBOOK_BYTES, "flickr8k", 1)])
def test_two_notebooks_run_side_by_side_where_there_is_room(cores, free, dataset, expected,
                                                            monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    assert side_by_side(dataset) == expected


def test_what_the_user_says_about_notebooks_at_once_holds(monkeypatch):
    monkeypatch.setattr(schedule, "side_by_side", lambda dataset: 2)
    for asked, expected in ((None, 2), (5, 5)):
        made = Request.make(["00_start_here"], "scenes", None, None, None, (), asked, None)
        assert made.workers == expected


def test_a_device_goes_to_the_notebooks_and_into_the_retry(monkeypatch, tmp_path):
    """The one that is taken anyway does not: a copy of a notebook from before has no such line."""
    put_in(monkeypatch, Card(), Card())
    made = Request.make(["00_start_here"], "scenes", None, None, None, (), 1, None,
                        device="cuda:1")
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
                     device=how.get("device", "auto"))


def test_what_has_an_option_of_its_own_is_no_parameter():
    for given in ("profile=full", "dataset=folder", "data=x"):
        with pytest.raises(ValueError, match=f"-p {given.split('=')[0]}: use --"):
            Request.make(["03"], "scenes", None, None, None, [given], None, None)


def test_a_fresh_batch_takes_no_published_rows(monkeypatch, store):
    """Nor does a process that it starts, or the retry."""
    monkeypatch.setenv("ITR_STUDY_EVIDENCE", "")  # put back afterwards
    assert not evidence_folder().name == "no-evidence" and len(itr.rows("scenes"))
    made = Request.make(["00_start_here"], "scenes", None, None, None, (), 1, None, fresh=True)
    assert "--fresh" in made.options
    with pytest.raises(ValueError, match="no runs of scenes are published"):
        itr.rows("scenes")
    assert len(timed_rows("steps")) and len(model_costs("flickr8k"))  # benchmarks are no runs
