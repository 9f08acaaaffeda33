"""The course: exercises are checked without telling, copies for a class hold no answer."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import torch

import itr_study as itr
from itr_study.lab import course
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.course import CHECK, Exercise, check_answer, exercises, student_copies
from tools.course import lesson_lines, solutions, solved, sources

CHEAP = ("02", "03", "05", "06", "07", "12")  # solutions that train nothing before their answers
NUMBER = Exercise("99.1", "Count again.", unit="dogs", width=2.0)
CHOICE = Exercise("99.2", "Look again.", choices="abc")


@pytest.fixture
def two(monkeypatch):
    """Two exercises: 17 dogs, and b."""
    made = {one.name: Exercise(**vars(one) | {"digests": one.digests_of(answer)})
            for one, answer in ((NUMBER, 17), (CHOICE, "b"))}
    monkeypatch.setattr(course, "exercises", lambda: made)


@pytest.mark.parametrize(("exercise", "guess", "said"), [
    ("99.1", 17, "right"), ("99.1", 16.5, "right"), ("99.1", np.float32(17.5), "right"),
    ("99.1", 19.9, "nearly"), ("99.1", 14, "nearly"), ("99.1", 27, "not yet. Count again."),
    ("99.1", -17, "not yet"), ("99.1", 1e299, "not yet"),
    ("99.2", "b", "right"), ("99.2", " B ", "right"), ("99.2", "c", "not yet. Look again."),
    ("99.1", None, "write a number (dogs), such as 1.5, in the place of None"),
    ("99.1", "many", "takes a number (dogs), such as 1.5, got 'many'. Type, for example: "
                     'itr.check_answer("99.1", 1.5)'),
    ("99.1", float("nan"), "got nan"), ("99.1", float("inf"), "got inf"),
    ("99.1", True, "of type bool"), ("99.1", 10**400, "of type int"),
    ("99.1", np.ones(2), "of type ndarray"), ("99.1", torch.ones(1), "of type Tensor"),
    ("99.2", "d", "takes one of 'a', 'b', 'c', got 'd'"), ("99.2", "", "got ''"),
    ("99.2", 2, 'of type int. Type, for example: itr.check_answer("99.2", "a")'),
    ("99.3", 1, "exercise must be one of 99.1, 99.2; got '99.3'; did you mean"),
    ([], 1, "got 'list'\nType, for example: itr.check_answer(\"99.1\", guess_1)")])
def test_a_guess_is_answered_in_a_sentence(two, exercise, guess, said):
    reply = check_answer(exercise, guess)
    assert said in repr(reply) and reply.right == (said == "right")


def test_a_guess_is_right_within_a_quarter_of_a_bin_wherever_the_answer_lies_in_it():
    for answer in np.linspace(-5, 5, 101):
        right = NUMBER.digests_of(answer)
        near = [NUMBER.digest(NUMBER.read(answer + step)) in right for step in (-0.49, 0, 0.49)]
        far = [NUMBER.digest(NUMBER.read(answer + step)) in right for step in (-2.51, 2.51)]
        assert all(near) and not any(far) and len(right) <= 2


@pytest.mark.parametrize("answer", ["b", float("nan"), None])
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(ValueError, match="the answer of 99.1 must be a number"):
        NUMBER.digests_of(answer)


def test_equal_answers_have_unequal_digests():
    other = Exercise("99.3", "", unit="cats", width=2.0)
    assert not set(NUMBER.digests_of(17)) & set(other.digests_of(17))


def test_exercises_stand_in_order_and_each_that_can_be_checked_has_a_cell():
    """In the notebook, its solution and the list of digests."""
    checked = []
    for path in find_notebooks():
        texts = [(cell.cell_type, cell.source) for cell in nbformat.read(path, as_version=4).cells]
        asked = [(place, match[1]) for place, (_, text) in enumerate(texts)
                 if (match := re.match(r"\*\*Exercise (\d\d\.\d)\.\*\* ", text))]
        names = [name for _, name in asked]
        assert names == [f"{path.name[:2]}.{k}" for k in range(1, len(names) + 1)] and names
        solution = path.parent / "solutions" / path.name
        prose = "\n".join(sources(solution, "markdown"))
        assert re.findall(r"^\*\*(\d\d\.\d)\. ", prose, re.M) == names
        given = re.findall(r'itr\.check_answer\("([\d.]+)"', "\n".join(sources(solution, "code")))
        for place, name in asked:
            kind, text = texts[place + 1]
            if name in given:
                assert kind == "code" and CHECK.findall(text) == [(name, f"guess_{name[3:]}")]
                assert re.match(rf"guess_{name[3:]} = None  # .+\n", text)
                checked.append(name)
    assert checked == list(exercises())


def shown(answer: float | str) -> set[str]:
    """How an answer would be written."""
    if isinstance(answer, str):
        return set()
    return {f"{answer:{style}}" for style in ("g", ".1f", ".2f", ".3f")} | (
        {f"{answer:.0f}"} if abs(answer) >= 10 or answer == int(answer) else set())


def found(answer: float | str, text: str) -> list[str]:
    return [one for one in shown(answer)
            if re.search(rf"(?<![\w.]){re.escape(one)}(?![\d.]*\d)", text)]


def test_an_answer_in_a_text_is_found():
    assert found(18, "so n = 18.") and found(0.5, "0.50 of them") and found(49.96, "about 50.0 %")
    assert not found(18, "1.18, 18.5, 180 and guess_18")


@pytest.mark.parametrize("path", [
    path if path.name[:2] in CHEAP else pytest.param(path, marks=pytest.mark.slow)
    for path in solutions()], ids=lambda path: path.stem)
def test_what_a_solution_computes_is_right_and_stands_nowhere(path, store, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    answers = solved(path, tmp_path / "figures")
    student_copies(tmp_path / "copies")
    copy = tmp_path / "copies" / path.name
    texts = [(cell.cell_type, cell.source) for cell in nbformat.read(copy, as_version=4).cells]
    entries = json.loads(course.ANSWERS.read_text())
    assert set(answers) == {name for name in exercises() if name[:2] == path.name[:2]}
    for name, answer in answers.items():
        assert itr.check_answer(name, answer).right and len(exercises()[name].digests) <= 2
        place = next(place for place, (_, text) in enumerate(texts)
                     if text.startswith(f"**Exercise {name}.**"))
        entry = {key: value for key, value in entries[name].items() if key != "digests"}
        own = f"{texts[place][1]}\n{texts[place + 1][1]}\n{entry['hint']}\n{entry.get('unit')}"
        assert not found(answer, own), name
        if isinstance(answer, str):  # one choice is right
            assert sum(itr.check_answer(name, one).right for one in entry["choices"]) == 1
        else:
            assert not itr.check_answer(name, answer + 3 * exercises()[name].width).right


def test_copies_for_a_class_hold_no_solution_and_open_anywhere(tmp_path):
    said = student_copies(tmp_path / "class", install="itr-study[plots,lab] @ https://a.org/w.whl")
    assert said == f"15 notebooks without solutions in {tmp_path / 'class'}."
    assert {path.name for path in tmp_path.glob("class/*")} == {
        path.name for path in find_notebooks()}
    for path in find_notebooks():
        copy = nbformat.read(tmp_path / "class" / path.name, as_version=4)
        nbformat.validate(copy)
        text = "\n".join(cell.source for cell in copy.cells)
        assert "solutions/" not in text and "](../" not in text
        assert copy.cells[1].source == ('%pip install --quiet "itr-study[plots,lab] @ '
                                        'https://a.org/w.whl"\nimport itr_study as itr')
        assert len(copy.cells) == len(nbformat.read(path, as_version=4).cells) + 1
    with pytest.raises(ValueError, match="holds 00_start_here.ipynb.*name another folder"):
        student_copies(tmp_path / "class")
    with pytest.raises(ValueError, match="one requirement without quotes"):
        student_copies(tmp_path / "other", install='a"; import os')


@pytest.fixture(scope="module")
def otter():
    """Skips where there is no otter-grader."""
    if importlib.util.find_spec("otter") is None:
        (pytest.fail if os.environ.get("ITR_REQUIRE_OTTER") == "1" else pytest.skip)(
            "no otter-grader: pip install otter-grader")


@pytest.mark.slow
def test_otter_grades_a_right_and_a_wrong_copy(otter, store, tmp_path):
    """The copy of 03: first with the right answers, then with one wrong and none."""
    student_copies(tmp_path / "class", otter=True)
    name = "03_topk.ipynb"
    answers = solved(find_notebooks(["03"])[0].parent / "solutions" / name, tmp_path / "figures")

    def points(guesses: dict[str, float]) -> dict[str, float]:
        copy = nbformat.read(tmp_path / "class" / name, as_version=4)
        for cell in copy.cells:
            for exercise, variable in CHECK.findall(cell.source):
                cell.source = cell.source.replace(
                    f"{variable} = None", f"{variable} = {guesses.get(exercise)!r}")
        (tmp_path / "in").mkdir(exist_ok=True)
        nbformat.write(copy, tmp_path / "in" / name)
        for command in (["generate", "-t", "class/tests/03_topk", "-o", "grader.zip"],
                        ["run", "-a", "grader.zip", "-o", "out", f"in/{name}"]):
            (tmp_path / "out").mkdir(exist_ok=True)
            subprocess.run([sys.executable, "-m", "otter", *command], cwd=tmp_path, check=True,
                           capture_output=True, timeout=300)
        graded = json.loads((tmp_path / "out" / "results.json").read_text())["tests"]
        return {test["name"]: test["score"] for test in graded if "score" in test}

    right = points(answers)
    assert {score for test, score in right.items() if test.startswith("q03")} == {1.0}
    wrong = points({"03.1": 0})
    assert wrong.keys() == right.keys()
    assert {score for test, score in wrong.items() if test.startswith("q03")} == {0.0}


def test_the_page_of_the_course_has_the_table_of_lessons():
    page = (find_notebooks()[0].parent.parent / "docs" / "course.md").read_text(encoding="utf-8")
    assert "\n".join(lesson_lines()) in page, "python -m tools.course prints it"
