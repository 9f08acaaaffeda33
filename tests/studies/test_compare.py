"""A loss or model of a file: refused if it cannot be trained, else compared, resumed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from itr_study.files.paths import home
from itr_study.lab.cli import verdict
from itr_study.lab.cli.app import app
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import keeps_rows
from itr_study.lab.studies import compare
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses.base import keep_part, kept_in
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

class Model(torch.nn.Module):
    def __init__(self, inputs, size=8):
        super().__init__()
        self.image = torch.nn.Linear(inputs.region_size, size)
        self.text = torch.nn.Linear(inputs.sentence_size, size)

    def encode_images(self, batch):
        return torch.nn.functional.normalize(self.image(batch.regions.mean(dim=1)), dim=1)

    def encode_texts(self, batch):
        return torch.nn.functional.normalize(self.text(batch.sentences), dim=1)

    def score(self, images, texts):
        return images @ texts.T

class Unfit(Model):
    def __init__(self):
        pass

class Heads(Model):
    def __init__(self, inputs, heads=8):
        super().__init__(inputs)
        self.attention = torch.nn.MultiheadAttention(inputs.region_size, heads)

class Odd(Heads):
    def __init__(self, inputs):
        super().__init__(inputs, heads=7)

class Half(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()

    def encode_images(self, batch):
        pass
"""


@pytest.fixture
def file(tmp_path, store) -> Path:
    path = tmp_path / "my_loss.py"
    path.write_text(GOOD)
    return path


def small(variants) -> compare.Setup:
    return compare.Setup("small", SMALL, variants)


def alone(loss: str) -> dict:
    return {"objective": [{"loss": loss}]}


HARDEST = alone("triplet_hardest")


def test_a_loss_of_a_file_has_a_name_by_its_content(file):
    name = keep_part(file, "Mine")
    assert name == keep_part(file, "Mine") and LOSSES[name]().scale == 20
    assert (LOSSES | OUTPUT_LOSSES)[name] is LOSSES[name] and name not in LOSSES
    config = SMALL.with_(objective=[{"loss": name, "arguments": {"scale": 5.0}}])
    assert not keeps_rows(config) and keeps_rows(SMALL.with_(data_options={}))
    scores = torch.randn(3, 3)
    function = LOSSES[keep_part(file, "mine")]()
    assert function(scores, torch.eye(3)) == LOSSES[name]()(scores, torch.eye(3))
    file.write_text(GOOD + "# other\n")
    assert keep_part(file, "Mine") != name
    other = SMALL.with_(objective=[{"loss": keep_part(file, "Mine")}])
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
        compare.read_variant(f"{file}:{part}")


def test_what_is_compared_is_a_file_or_a_name(tmp_path, file):
    path = tmp_path / "both.toml"
    path.write_text('objective = [{ loss = "topk", arguments = { k = 2 } }, { loss = "info_nce" }]')
    name, changes = compare.read_variant(str(path))
    terms = changes["objective"]
    assert (name, len(terms), terms[0]["arguments"]) == ("both", 2, {"k": 2})
    path.write_text('objective = [{ loss = "my_loss.py:Mine", labels = "sentence" }]')
    (term,) = compare.read_variant(str(path))[1]["objective"]  # beside the file, from anywhere
    assert term == {"loss": keep_part(file, "Mine"), "labels": "sentence"}
    assert compare.read_variant("hardest")[1] == HARDEST
    assert compare.read_variant("saf") == ("saf", {"model": "saf", "model_arguments": {}})
    path.write_text("loss = 3")
    with pytest.raises(ValueError, match="needs a list of terms"):
        compare.read_variant(str(path))
    with pytest.raises(ValueError, match="say which class or function"):
        compare.read_variant(str(file))
    with pytest.raises(ValueError, match=r"there is no file no\.py"):
        compare.read_variant("no.py:Loss")
    with pytest.raises(ValueError, match="what is compared must be one of.*'topk'"):
        compare.read_variant("topkk")


def test_two_of_one_name_are_told_apart_and_one_twice_is_refused(tmp_path, file):
    other = tmp_path / "v2.py"
    other.write_text(GOOD.replace("scale=20.0", "scale=5.0"))
    found = compare.read_variants([f"{file}:Mine", f"{other}:Mine", "hardest"])
    assert list(found) == [f"{file}:Mine", f"{other}:Mine", "hardest"]
    assert list(compare.read_variants([f"{file}:Mine", f"{other}:mine"])) == ["Mine", "mine"]
    for twice in ((f"{file}:Mine",) * 2, ("hardest", "triplet_hardest")):
        with pytest.raises(ValueError, match=f"{twice[1]} is the same as .*; name each once"):
            compare.read_variants(twice)


def test_what_is_the_same_with_its_defaults_is_compared_once(store):
    both = compare.read_variants(["topk", "top5"])
    found = compare.set_up("scenes", "two_branch", True, None, both, spare=("top5",))
    assert list(found.variants) == ["topk"]
    with pytest.raises(ValueError, match="top5 is the same as topk in two_branch; name each once"):
        compare.set_up("scenes", "two_branch", True, None, both)


def test_an_own_loss_that_is_called_as_a_rival_stays_its_own(file):
    file.write_text(GOOD + "\nsoft = mine\n")
    (setup,), _, _ = verdict.prepare(f"{file}:soft", [], None, None, ["two_branch"], True)
    own, *rivals = setup.variants
    assert own == f"{file}:soft" and rivals == list(compare.RIVALS)
    assert setup.variants[own]["objective"][0]["loss"] == keep_part(file, "soft")
    (smaller,), _, _ = verdict.prepare("soft", [], None, None, ["two_branch"], True, None,
                                       {"test": 50})
    assert smaller.start.data_options == setup.start.data_options | {"test": 50}
    with pytest.raises(ValueError, match="must be one of train.*skip_bad"):
        verdict.prepare("soft", [], None, None, ["two_branch"], True, None, {"skip_bad": True})


def test_a_copy_where_losses_were_kept_once_is_found(file, store):
    name, digest = keep_part(file, "mine").split("@")
    kept, former = kept_in(digest), home() / "losses" / f"{digest}.py"
    former.parent.mkdir()
    kept.rename(former)
    assert kept_in(digest) == former and LOSSES[f"{name}@{digest}"] is not None


def test_a_model_of_a_file_is_compared_with_that_of_the_base(file, monkeypatch):
    name, changes = compare.read_variant(f"{file}:Model")
    setup = compare.set_up("scenes", "two_branch", True, None, {name: changes})
    assert list(setup.variants) == ["Model", "two_branch"] and not setup.variants["two_branch"]
    config, base = (setup.arms(which, 1.0, 1)[0].config for which in setup.variants)
    assert config.model == keep_part(file, "Model") and not config.model_arguments
    assert base == setup.start and config.objective == base.objective
    assert not keeps_rows(config) and identify(config).id != identify(base).id
    monkeypatch.setattr(compare, "FACTORS", (1.0,))
    monkeypatch.setattr(compare, "FARTHER", 0)
    monkeypatch.setattr(compare, "SEEDS", 1)
    sides, _ = compare.trained(small({name: changes, "vsepp": {}}), "cpu", 0, name, str)
    assert [side.name for side in sides] == [name, "vsepp"] and sides[0].mean("rsum") > 0
    compare.set_up("scenes", "two_branch", True, None, compare.read_variants([f"{file}:Heads"]))
    for part, said in (("Unfit", "cannot be built.*Unfit\\(inputs\\)"), ("Half", "encode_texts"),
                       ("Odd", "cannot be built.*embed_dim must be divisible")):
        variants = compare.read_variants([f"{file}:{part}"])
        with pytest.raises(ValueError, match=said):
            compare.set_up("scenes", "two_branch", True, None, variants)
    with pytest.raises(ValueError, match="is the model of two_branch itself: name a rival"):
        compare.set_up("scenes", "two_branch", True, None, compare.read_variants(["two_branch"]))
    with pytest.raises(ValueError, match="another --base may have the inputs"):
        compare.set_up("scenes", "two_branch", True, None, compare.read_variants(["saf"]))


def test_all_are_trained_alike_and_once(file, monkeypatch):
    monkeypatch.setattr(compare, "FACTORS", (1.0, 2.0))
    monkeypatch.setattr(compare, "FARTHER", 0)
    count, begun = count_trainings(monkeypatch), []
    name, changes = compare.read_variant(f"{file}:mine")
    setup = small({name: changes, "hardest": HARDEST})
    assert compare.minutes_left([setup])[0] == 2 * (5 + 1)
    assert compare.minutes_left([setup, setup])[0] == 2 * 2 * (5 + 1)
    with monkeypatch.context() as patch:  # published at the base's rate, which may not be the best
        patch.setattr(compare, "ended_row", lambda config, root: (
            config.settings.learning_rate == SMALL.settings.learning_rate) or None)
        assert compare.minutes_left([setup])[0] == 2 * (1 + 4)
    sides, notes = compare.trained(setup, "cpu", 0, "mine", begun.append)
    assert [side.name for side in sides] == ["mine", "hardest"] == begun
    assert len(count) == 2 * 6 and compare.minutes_left([setup]) == (0, 0.0)
    assert list(sides[0].tables) == list("01234") and "1, 2 × the rate" in notes[0]
    assert any("an end of what was tried" in note for note in notes)
    found = verdict.report(sides, notes)
    assert found.metric == "rsum" and "hardest" in found.answers[0]
    assert found.table["image_low"].notna().sum() == 9  # ranks are here
    again, _ = compare.trained(setup, "cpu", 0, "mine", begun.append)
    assert len(count) == 12  # the store has all
    assert [side.tables for side in again] == [side.tables for side in sides]


def test_what_diverges_is_left_out_and_what_fails_is_said_at_once(file, monkeypatch):
    file.write_text("def worse(scores, relevance):\n"
                    "    return scores.sum() * (float('nan') if len(scores) > 12 else 1)\n"
                    "def broken(scores, relevance):\n"
                    "    assert len(scores) < 12, 'too long'\n"
                    "    return scores.mean()\n")
    monkeypatch.setattr(compare, "FACTORS", (1.0,))
    monkeypatch.setattr(compare, "FARTHER", 0)
    worse, broken = (alone(keep_part(file, name)) for name in ("worse", "broken"))
    setup = small({"worse": worse, "hardest": HARDEST, "soft": alone("triplet_soft")})
    with pytest.raises(ValueError, match="worse has no result, 1 of 1 runs diverged"):
        compare.trained(setup, "cpu", 0, "worse", str)
    sides, notes = compare.trained(setup, "cpu", 0, "hardest", str)
    assert [side.name for side in sides] == ["hardest", "soft"]
    assert any(note.startswith("worse is left out, 1 of 1 runs diverged") for note in notes)
    count = count_trainings(monkeypatch)
    with pytest.raises(ValueError, match="broken has no result, 1 of 1 runs failed.*too long"):
        compare.trained(small({"broken": broken, "sum": alone("triplet_sum")}), "cpu", 0, "", str)
    assert len(count) == 1  # none of the others


def test_the_command_says_its_budget_and_asks_above_an_hour(file, monkeypatch, capsys):
    monkeypatch.setattr(compare, "expected_minutes", lambda *_: 600.0)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as ended:
        app(["compare", f"{file}:mine", "--against", "hardest", "--quick"])
    told = capsys.readouterr()
    assert ended.value.code == 2 and "add --yes" in told.err
    assert "mine, hardest in two_branch on scenes: " in told.out and "runs to train" in told.out


def fake(monkeypatch, values: dict[str, float]) -> compare.Setup:
    sides = [compare.Runs(name, {str(seed): {"rsum": value + seed % 2} for seed in range(5)})
             for name, value in values.items()]
    monkeypatch.setattr(compare, "trained", lambda *_: (list(sides), ["alike"]))
    return small(dict.fromkeys(values, {}))


def test_the_best_is_taken_where_no_loss_is_named(monkeypatch):
    setup = fake(monkeypatch, {"a": 3.0, "b": 9.0, "c": 5.0})
    (found,) = verdict.compare([setup], "cpu", False)
    assert found.answers[0] == "Take b." and found.a.name == "b"
    assert any("picked for its mean" in note for note in found.notes)


def test_a_card_has_the_numbers_of_each_model_under_its_name(monkeypatch):
    setup = fake(monkeypatch, {"a": 3.0, "b": 9.0})
    bests = {"one": {"a": 3.0, "b": 9.0}, "two": {"a": 8.0, "b": 2.0}}
    monkeypatch.setattr(compare, "trained", lambda setup, *_: ([compare.Runs(
        name, {str(seed): {"rsum": value + seed % 2} for seed in range(5)})
        for name, value in bests[setup.base].items()], []))
    card = verdict.model_card(verdict.compare(
        [setup._replace(base=base) for base in bests], "cpu", False))
    index = json.loads(card.partition("model-index: ")[2].partition("\n---")[0])
    assert [(model["name"], [(result["dataset"]["name"], result["metrics"][0]["value"])
                             for result in model["results"]]) for model in index] == [
        ("b", [("one on scenes", 9.4)]), ("a", [("two on scenes", 8.4)])]
    assert card.partition("---\n\n")[2].startswith("# b, a\n")


def test_several_base_configs_have_a_part_each_in_every_output(monkeypatch, tmp_path):
    setup = fake(monkeypatch, {"a": 3.0, "b": 9.0})
    found = verdict.compare([setup, setup._replace(base="other")], "cpu", True)
    assert [one.a.name for one in found] == ["a", "a"]  # ours, though b is better
    outputs = (tmp_path / "p.html", tmp_path / "README.md", tmp_path / "t.tex",
               [tmp_path / "d.svg", tmp_path / "d.PDF"])
    verdict.check_outputs(*outputs)
    told = verdict.written(found, *outputs)
    page, card, latex, svg = (path.read_text(encoding="utf-8") for path in (
        *outputs[:3], outputs[3][0]))
    for title in ("small on scenes", "other on scenes"):
        assert f"In {title}:" in told and f"<h2>{title}</h2>" in page and f"## {title}" in card
        assert f"% {title}" in latex and title in svg
    assert page.count("base64,") == 4 and latex.count(r"\toprule") == 2
    assert told.count("written: ") == 5 and outputs[3][1].read_bytes()[:4] == b"%PDF"
    with pytest.raises(ValueError, match=r"takes a file of \.svg, \.pdf, \.png, got x\.foo"):
        verdict.check_outputs(None, None, None, [Path("x.foo")])
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        verdict.check_outputs(tmp_path, None, None, [])


def test_the_command_refuses_before_it_trains(file, store, tmp_path, capsys):
    for arguments, said in (
            ((f"{file}:mine", "--metric", "r1"), "metric must be one of i2t_r1"),
            ((f"{file}:mine", "--base", "no"), "base config of scenes must be one of"),
            (("--data", tmp_path), "there is no captions.csv in"),
            ((f"{file}:mine", "--figure", "x.foo"), "--figure takes a file of .svg")):
        with pytest.raises(SystemExit) as ended:
            app(["compare", "--quick", *map(str, arguments)])
        told = capsys.readouterr()
        assert ended.value.code == 2 and said in told.err and "Traceback" not in told.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_at_any_time_it_goes_on(file, store):
    """Killed while the first runs train; what has ended is not trained again."""
    command = [sys.executable, "-m", "itr_study", "compare", f"{file}:Mine", "--against", "soft",
               "--quick"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        until = time.monotonic() + 120
        while not list(store.glob("runs/*/manifest.json")):
            assert time.monotonic() < until and first.poll() is None
            time.sleep(0.1)
        first.kill()
    kept = {path: path.stat().st_mtime_ns for path in store.glob("runs/*/manifest.json")}
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "rsum over 5 pairs of runs" in again.stdout
    assert kept and all(path.stat().st_mtime_ns == at for path, at in kept.items())


def test_beyond_an_end_that_is_best_more_rates_are_tried(file, monkeypatch):
    """Dev is best at 1/8 of the base's rate: 0.25 and 0.125 are tried, and no more."""
    monkeypatch.setattr(compare, "SEEDS", 1)
    tried = []

    def train(runs, **_):
        tried.append([run.factors["rate"] for run in runs])
        return pd.DataFrame([{"status": "done", "dev_rsum": -abs(np.log(8 * rate))}
                             for rate in tried[-1]])

    monkeypatch.setattr(compare, "train_arms", train)
    monkeypatch.setattr(compare, "collapses", lambda found: [])
    monkeypatch.setattr(compare, "side_of", lambda name, *_: compare.Runs(name, {}))
    _, notes = compare.trained(small({"a": HARDEST, "b": HARDEST}), "cpu", 0, "a", str)
    assert tried[0] == [0.5, 1, 2, 4] and tried[2] == [0.5, 1, 2, 4, 0.25, 0.125] != tried[1]
    assert tried[3] == [0.125] and tried[4:] == tried[:4]
    assert "a: the best rate, 0.125 × the base's, is an end" in notes[1]
    rows = [{"status": "done", "dev_rsum": value} for value in (1, 3, 2, 0)]
    assert compare.beyond(compare.FACTORS, rows) is None  # the best is within
    assert compare.beyond(compare.FACTORS, rows[:3] + [{"status": "done", "dev_rsum": 9}]) == 8.0
    assert compare.beyond((1.0,), [{"status": "diverged"}]) is None


def test_a_rate_that_failed_is_not_passed_over(file, monkeypatch):
    """The best of the others may not be the best."""
    def train(runs, **_):
        return pd.DataFrame([{"status": "failed" if run.factors["rate"] == 1 else "done",
                              "reason": "killed", "dev_rsum": 1.0} for run in runs])

    monkeypatch.setattr(compare, "train_arms", train)
    with pytest.raises(ValueError, match="a has no result, 1 of 4 runs failed: killed. Runs that"):
        compare.trained(small({"a": HARDEST, "b": HARDEST}), "cpu", 0, "a", str)
