"""Figures on disk: the same bytes every time, honest provenance, better ones kept."""

import errno
import json

import pandas as pd
import pytest

from itr_study.files.atomic import write_json
from itr_study.plots import save_figure, tabulate
from itr_study.plots.figures import COMMON
from itr_study.plots.style import canvas

TABLE = tabulate({"topk": lambda score: max(0.0, score)}, [0.0, 1 / 3, 1.0])


def save(folder, profile="quick", seeds=(0, 1, 2), name="03_topk__k_sweep", dataset="scenes",
         summary="R@1 peaks at small k.", table=TABLE, **provenance):
    return save_figure(canvas(size=(1, 1))[0], table, name, dataset, summary,
                       {"profile": profile, "seeds": list(seeds), **provenance}, folder)


def read(folder) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def test_three_files_and_the_same_bytes_again(tmp_path):
    path = save(tmp_path / "figures", run_ids=["ab12"], data="f00d")
    assert path == tmp_path / "figures/scenes/03_topk__k_sweep.png"
    first = read(tmp_path)
    assert [name.rsplit(".", 1)[1] for name in first] == ["csv", "json", "png"]
    save(tmp_path / "figures", run_ids=["ab12"], data="f00d")
    assert read(tmp_path) == first


def drawn(folder, value: float, word: str, run: str = "ab12", published: bool = True):
    """A saved figure that shows a word, with a value in its table."""
    figure, (axes,) = canvas(size=(2, 1))
    axes.text(0.1, 0.5, word)
    return save_figure(figure, pd.DataFrame({"value": [value]}), "03_topk__k_sweep", "scenes",
                       "A value.", {"profile": "quick", "seeds": [0], "run_ids": [run]}, folder,
                       published)


def test_a_published_picture_is_replaced_only_when_its_table_changed(tmp_path):
    path = drawn(tmp_path, 1.0, "one")
    origin = path.with_suffix(".json")
    write_json(origin, json.loads(origin.read_text()) | {"versions": {"matplotlib": "1"}})
    before = read(tmp_path)
    drawn(tmp_path, 1.0 + 1e-9, "other words")  # the last of ten digits
    assert read(tmp_path) == before
    drawn(tmp_path, 1.0, "one", "cd34")  # of other runs: that is kept beside it
    assert json.loads(origin.read_text())["run_ids"] == ["cd34"] and path.read_bytes() == before[
        path.relative_to(tmp_path).as_posix()]
    path.unlink()  # to have it drawn anew
    assert drawn(tmp_path, 1.0, "other words").read_bytes() != before[
        path.relative_to(tmp_path).as_posix()]
    before = path.read_bytes()
    assert drawn(tmp_path, 1.0 + 3e-9, "one").read_bytes() != before
    assert json.loads(origin.read_text())["versions"].keys() == {"itr_study", "matplotlib"}


def test_your_own_picture_is_drawn_anew_each_time(tmp_path):
    before = drawn(tmp_path, 1.0, "one", published=False).read_bytes()
    assert drawn(tmp_path, 1.0, "other words", published=False).read_bytes() != before


def test_table_and_provenance_say_what_was_drawn(tmp_path):
    path = save(tmp_path, seeds=[0, 1, 1], data="f00d")
    assert list(pd.read_csv(path.with_suffix(".csv")).columns) == ["method", "score", "loss"]
    assert b"0.3333333333\n" in path.with_suffix(".csv").read_bytes()
    record = json.loads(path.with_suffix(".json").read_text())
    assert record["notebook"] == "03_topk" and record["figure"] == "k_sweep"
    assert record["seeds_count"] == 2 and record["profile"] == "quick"
    assert record["summary"] == "R@1 peaks at small k." and record["data"] == "f00d"
    assert {"itr_study", "matplotlib"} <= record["versions"].keys()


@pytest.mark.parametrize("profile, seeds, reason", [
    ("smoke", range(3), "profile quick, this one smoke"),
    ("quick", range(2), "3 seeds, this one 2"), ("full", range(1), "3 seeds, this one 1")])
def test_a_better_figure_is_kept_and_the_new_one_goes_elsewhere(tmp_path, capsys, profile, seeds,
                                                                reason):
    save(tmp_path / "figures")
    before = read(tmp_path / "figures")
    path = save(tmp_path / "figures", profile, seeds)
    assert path == tmp_path / "figures-local/scenes/03_topk__k_sweep.png" and path.is_file()
    assert read(tmp_path / "figures") == before
    assert reason in capsys.readouterr().out


@pytest.mark.parametrize("profile, seeds", [("quick", 3), ("quick", 4), ("full", 3)])
def test_an_equal_or_better_figure_replaces(tmp_path, capsys, profile, seeds):
    save(tmp_path / "figures")
    save(tmp_path / "figures", profile, range(seeds), summary="New.")
    record = json.loads((tmp_path / "figures/scenes/03_topk__k_sweep.json").read_text())
    assert record["summary"] == "New." and not (tmp_path / "figures-local").exists()
    assert capsys.readouterr().out == ""


def test_a_table_alone_has_no_picture_and_takes_an_older_one_away(tmp_path):
    old = save(tmp_path)
    path = save_figure(None, TABLE, "03_topk__k_sweep", "scenes", "As printed.",
                       {"profile": "quick", "seeds": [0, 1, 2]}, tmp_path)
    assert path == old.with_suffix(".csv") and path.is_file() and not old.exists()
    assert json.loads(old.with_suffix(".json").read_text())["picture"] is False


def common(folder, **more):
    return save_figure(canvas(size=(1, 1))[0], TABLE, "03_topk__drawn", COMMON, "Drawn.",
                       {"seeds": []} | more, folder)


def test_what_no_data_set_changes_is_filed_once_whatever_the_profile(tmp_path):
    path = common(tmp_path)
    assert path == tmp_path / "common/03_topk__drawn.png"
    first = read(tmp_path)
    common(tmp_path)
    assert read(tmp_path) == first and "profile" not in json.loads(
        path.with_suffix(".json").read_text())
    for more in ({"profile": "full"}, {"seeds": [0]}):
        with pytest.raises(ValueError, match="belongs to its data set"):
            common(tmp_path, **more)


@pytest.mark.parametrize("options, message", [
    ({"name": "topk_sweep"}, "name must look like"), ({"dataset": "../x"}, "dataset must be"),
    ({"summary": "no full stop"}, "full sentence"), ({"profile": "slow"}, "one of smoke, quick"),
    ({"timestamp": 1}, "may not hold 'timestamp'"), ({"parts": {"Date": 1}}, "'Date'"),
    ({"data": "/home/me/data"}, "path of this machine"),
    ({"data": ["C:\\data"]}, "path of this machine")])
def test_bad_arguments_are_refused_before_anything_is_written(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        save(tmp_path, **options)
    assert read(tmp_path) == {}


def test_an_empty_table_and_missing_seeds_are_refused(tmp_path):
    figure, _ = canvas(size=(1, 1))
    with pytest.raises(ValueError, match="table is empty"):
        save_figure(figure, TABLE.iloc[:0], "03_topk__x", "scenes", "A.",
                    {"profile": "quick", "seeds": [0]}, tmp_path)
    with pytest.raises(ValueError, match="provenance needs seeds"):
        save_figure(figure, TABLE, "03_topk__x", "scenes", "A.", {"profile": "quick"}, tmp_path)


@pytest.mark.parametrize(("text", "told"), [("{", "not valid JSON"), ("[]", "not the provenance"),
                                            ('{"profile": "full"}', "not the provenance")])
def test_a_damaged_provenance_is_named_with_what_to_do(tmp_path, text, told):
    path = save(tmp_path).with_suffix(".json")
    path.write_text(text)
    with pytest.raises(ValueError, match=f"k_sweep.json is {told}.*delete it to have it made"):
        save(tmp_path)


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("itr_study.files.paths.try_writing", refuse)
    with pytest.raises(OSError, match="scenes cannot be written: Read-only.*--figures FOLDER"):
        save(tmp_path)


def refuse(folder):
    raise OSError(errno.EROFS, "Read-only file system")
