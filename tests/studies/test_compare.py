"""A loss from a file: refused if it cannot be trained, else compared, resumed, read again."""

import sys
from pathlib import Path

import pytest
import torch

from itr_study.lab.cli import verdict
from itr_study.lab.cli.app import app
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import keeps_rows
from itr_study.lab.studies import compare
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses.base import keep_loss
from tests.small_runs import SMALL, count_trainings

GOOD = """
import torch

def mine(scores, relevance):
    chances = (20 * scores).log_softmax(dim=1) + (20 * scores).log_softmax(dim=0)
    return -(chances * relevance).sum() / relevance.sum().clamp(min=1)

class Mine(torch.nn.Module):
    def __init__(self, scale=20.0):
        super().__init__()
        self.scale = scale

    def forward(self, scores, relevance):
        return mine(scores * self.scale / 20, relevance)
"""


@pytest.fixture
def file(tmp_path, store) -> Path:
    path = tmp_path / "my_loss.py"
    path.write_text(GOOD)
    return path


def small(objectives) -> compare.Setup:
    return compare.Setup(SMALL, objectives, None)


def test_a_loss_of_a_file_has_a_name_by_its_content(file):
    name = keep_loss(file, "Mine")
    assert name == keep_loss(file, "Mine") and LOSSES[name]().scale == 20
    assert (LOSSES | OUTPUT_LOSSES)[name] is LOSSES[name] and name not in LOSSES
    config = SMALL.with_(objective=[{"loss": name, "arguments": {"scale": 5.0}}])
    assert not keeps_rows(config) and keeps_rows(SMALL.with_(data_options={}))
    scores = torch.randn(3, 3)
    function = LOSSES[keep_loss(file, "mine")]()
    assert function(scores, torch.eye(3)) == LOSSES[name]()(scores, torch.eye(3))
    file.write_text(GOOD + "# other\n")
    assert keep_loss(file, "Mine") != name
    other = SMALL.with_(objective=[{"loss": keep_loss(file, "Mine")}])
    assert identify(other).id != identify(SMALL.with_(objective=[{"loss": name}])).id


@pytest.mark.parametrize(("text", "part", "said"), [
    (GOOD, "Mien", "did you mean 'Mine'"),
    ("import nowhere_at_all", "x", "does not import: ModuleNotFoundError.*stand alone"),
    ("def x(scores, relevance):\n    return (scores - relevance).mean(1)", "x", "end with .mean"),
    ("def x(scores, relevance):\n    return scores.sum() * float('nan')", "x", "gives nan"),
    ("def x(scores, relevance):\n    return scores.detach().sum()", "x", "passes no gradient"),
    ("class x:\n    def __init__(self, k):\n        pass", "x", "cannot be built.*a default"),
    ("def x(scores):\n    return scores.sum()", "x", "check_value"),
])
def test_what_cannot_be_trained_is_refused_before_anything_is(file, text, part, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        compare.own_objective(f"{file}:{part}")


def test_objectives_are_files_or_names(tmp_path, file):
    path = tmp_path / "both.toml"
    path.write_text('objective = [{ loss = "topk", arguments = { k = 2 } }, { loss = "info_nce" }]')
    name, terms = compare.own_objective(str(path))
    assert (name, len(terms), terms[0]["arguments"]) == ("both", 2, {"k": 2})
    assert compare.own_objective("hardest")[1] == (compare.TERMS["hardest"],)
    path.write_text("loss = 3")
    with pytest.raises(ValueError, match="needs a list of terms"):
        compare.own_objective(str(path))
    with pytest.raises(ValueError, match="say which class or function"):
        compare.own_objective(str(file))
    with pytest.raises(ValueError, match=r"there is no file no\.py"):
        compare.own_objective("no.py:Loss")
    with pytest.raises(ValueError, match="objective must be one of"):
        compare.own_objective("topkk")


def test_all_are_trained_alike_and_once(file, monkeypatch):
    monkeypatch.setattr(compare, "FACTORS", (1.0, 2.0))
    count = count_trainings(monkeypatch)
    name, terms = compare.own_objective(f"{file}:mine")
    setup = small({name: terms, "hardest": (compare.TERMS["hardest"],)})
    assert compare.minutes_left(setup)[0] == 2 * (5 + 1)
    with monkeypatch.context() as patch:  # published at the base's rate, which may not be the best
        patch.setattr(compare, "ended_row", lambda config, root: (
            config.settings.learning_rate == SMALL.settings.learning_rate) or None)
        assert compare.minutes_left(setup)[0] == 2 * (1 + 4)
    sides, notes = compare.trained(setup, "cpu", workers=0)
    assert [side.name for side in sides] == ["mine", "hardest"] and len(count) == 2 * 6
    assert list(sides[0].tables) == list("01234") and "1, 2 × the rate" in notes[0]
    assert any("an end of what was tried" in note for note in notes)
    found = verdict.report(sides[0], sides[1:], notes)
    assert found.metric == "rsum" and "hardest" in found.answers[0]
    again, _ = compare.trained(setup, "cpu", workers=0)
    assert len(count) == 12 and again == sides  # the store has all


def test_a_loss_that_diverges_is_named(file, monkeypatch):
    file.write_text("def worse(scores, relevance):\n"
                    "    return (scores - relevance).square().mean() + "
                    "0 / (scores.shape[0] < 12) * scores.sum()")
    monkeypatch.setattr(compare, "FACTORS", (1.0,))
    name, terms = "worse", ({"loss": keep_loss(file, "worse")},)
    setup = small({name: terms, "hardest": (compare.TERMS["hardest"],)})
    with pytest.raises(ValueError, match="worse: all runs ended without a model"):
        compare.trained(setup, "cpu", workers=0)


def test_the_command_says_its_budget_and_asks_above_an_hour(file, monkeypatch, capsys):
    monkeypatch.setattr(compare, "expected_minutes", lambda *_: 600.0)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as ended:
        app(["compare", f"{file}:mine", "--against", "hardest", "--quick"])
    told = capsys.readouterr()
    assert ended.value.code == 2 and "add --yes" in told.err
    assert "mine, hardest in two_branch on scenes: " in told.out and "runs to train" in told.out


def test_the_best_is_taken_where_no_loss_is_named(monkeypatch):
    rows = {"a": 3.0, "b": 9.0, "c": 5.0}
    sides = [compare.Runs(name, {str(seed): {"rsum": value + seed % 2} for seed in range(5)})
             for name, value in rows.items()]
    monkeypatch.setattr(compare, "trained", lambda *_: (sides, ["alike"]))
    found = verdict.compare(small({}), "cpu", None)
    assert found.answers[0] == "Take b." and found.a.name == "b"
    assert any("picked for its mean" in note for note in found.notes)
