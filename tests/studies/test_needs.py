"""Sections that a data set cannot fill."""

import json
import re
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from itr_study.data import load_dataset
from itr_study.files.paths import project_root
from itr_study.lab.studies.needs import ABOVE, MARK, NEEDS, lacking, leave_out, left_out
from itr_study.lab.studies.study import Study
from tests.data import tiny

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9]*.ipynb"))


def study(name, root=None, **options):
    """What a need asks of a study."""
    return SimpleNamespace(dataset=load_dataset(name, root, **options), dataset_name=name,
                           root=root, parameters=SimpleNamespace())


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """A shell whose study looks at features alone."""
    tiny.precomputed(tmp_path, "coco")
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    leave_out(study("coco", tmp_path))
    return shell


def test_what_each_data_set_lacks(tmp_path):
    tiny.precomputed(tmp_path, "coco")
    scenes, features = study("scenes", train=4, dev=2, test=3), study("coco", tmp_path)
    absent = {one.dataset_name: [need for need in NEEDS if lacking(one, need)]
              for one in (scenes, features)}
    assert absent == {"scenes": ["people's grades", "grades of its pairs", "classes"], "coco": [
        "people's grades", "grades of its pairs", "rated captions", "exact relevance", "boxes",
        "pictures", "classes", "five texts an image"]}
    assert lacking(scenes, "at least 4 images") == "scenes has 3 images in test, fewer than 4"
    assert not lacking(scenes, "at least 3 images")
    assert not lacking(scenes, "people's grades or exact relevance")
    assert lacking(features, "classes or boxes") == "coco has no classes and no boxes of objects"
    with pytest.raises(ValueError, match="need of a cell must be one of .*; got 'grades'"):
        lacking(scenes, "grades")


def test_a_cell_is_left_out_with_one_sentence_a_section(shell, capsys):
    for code in ("# needs: people's grades, boxes\nunknown_name",
                 "# needs: the cells above\nunknown_name", "# needs: many texts an image\na = 1",
                 "# needs: the cells above\nb = a + 1", "# needs: pictures\nunknown_name"):
        assert shell.run_cell(code).success
    assert shell.user_ns["b"] == 2
    told = capsys.readouterr().out
    assert told.splitlines() == [
        "Left out: coco has no people's grades and no boxes of objects (needed here)",
        "Left out: coco has no pictures (needed here)"]
    assert left_out([told]) == ("2 sections left out: no people's grades and no boxes of objects "
                                "of coco; no pictures of coco")
    assert left_out(["nothing"]) == ""
    assert left_out(["a\nSKIPPED Table I: no file", told]).endswith("of coco; skipped: Table I")


def test_a_second_study_takes_the_place_of_the_first(shell):
    leave_out(study("scenes", train=4, dev=2, test=2))
    assert shell.run_cell("# needs: pictures\nc = 3").success and shell.user_ns["c"] == 3


def test_notebooks_need_what_there_is():
    scenes = study("scenes", train=4, dev=2, test=2)
    for path in NOTEBOOKS:
        scenes.parameters = Study(path.stem, {"profile": "smoke"}).parameters
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            first = "".join(cell["source"]).partition("\n")[0]
            if first.startswith(MARK):
                for need in first.removeprefix(MARK).split(", "):
                    assert need == ABOVE or lacking(scenes, need) is not None
                    for item, holder in re.findall(r"(\S+) in (\w+)", need):
                        held = vars(type(scenes.parameters).of(profile="full"))
                        assert item in held.get(holder, ["lines"]), (path.stem, need)


def test_what_parameters_and_cells_above_lack(shell, capsys):
    asked = study("scenes", train=4, dev=2, test=2)
    asked.parameters = SimpleNamespace(ks=["a", "b/max"])
    leave_out(asked)
    for code in ("# needs: a in ks, b/max in ks\nd = 1", "# needs: c in ks or a in ks\ne = 1",
                 "# needs: c in ks, people's grades, classes\nunknown_name",
                 "# needs: the cells above\nunknown_name", "table = []",
                 "# needs: lines in table, c in ks or d in ks\nunknown_name",
                 "# needs: lines in nowhere\nunknown_name", "table = [1]",
                 "# needs: lines in table\nf = table[0]"):
        assert shell.run_cell(code).success
    assert [shell.user_ns[name] for name in "def"] == [1, 1, 1]
    told = capsys.readouterr().out
    assert told.splitlines() == [
        "Left out: ks has no c and scenes has no people's grades and no classes (needed here)",
        "Left out: the table table has no lines and ks has no c and no d (needed here)",
        "Left out: the table nowhere has no lines (needed here)"]
    assert left_out([told]).startswith("3 sections left out: ")
