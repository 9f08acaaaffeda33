"""Times of training steps: the table that the benchmark leaves, and how it takes them."""

import importlib.util
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from torch import nn

from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import named_arms
from itr_study.lab.runs.run import git_commit
from itr_study.lab.studies.nb12_claims import ledger_arms
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.timing import (
    GROWTH,
    RERANKING,
    STEPS,
    TIMES,
    timed_rows,
    times_file,
)
from itr_study.rerank import RERANKERS
from tools import scale

ROOT = Path(__file__).parents[2]
COLUMNS = ("arm", "seed", STEPS, "dataset", "model")


def timed(metric: str) -> set[str]:
    """The arms of the claims about a time."""
    return {arm for claim in load_claims().query("metric == @metric").to_dict("records")
            for arm in named_arms(claim["arm_a"], claim["arm_b"])}


TIMED = timed(STEPS)


def loaded(monkeypatch, name: str):
    """A benchmark as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # so that what the benchmark sets is taken back
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def benchmark(monkeypatch):
    return loaded(monkeypatch, "steps")


def test_the_table_lies_among_the_evidence_and_says_what_it_lacks(evidence):
    assert timed_rows("steps").empty and list(timed_rows("steps")) == list(COLUMNS)
    path = evidence / "common" / "steps.csv"
    path.parent.mkdir(parents=True)
    path.write_text("arm,seed,step_milliseconds,dataset,model,more\nsum,0,1.5,scenes,m,x\n")
    assert timed_rows("steps")[STEPS].tolist() == [1.5]
    path.write_text("arm,seed,step_milliseconds,dataset\nsum,0,1.5,scenes\n")
    with pytest.raises(ValueError, match="steps.csv lacks the columns model; measure again"):
        timed_rows("steps")


@pytest.mark.evidence
@pytest.mark.parametrize("name, metric", TIMES.items())
def test_the_committed_table_has_every_claimed_arm_in_every_round_of_one_model(name, metric):
    rows, arms = timed_rows(name), timed(metric)
    assert arms and arms <= set(rows["arm"]) and (rows[metric] > 0).all()
    assert rows["dataset"].nunique() == rows["model"].nunique() == 1
    rounds = rows["seed"].nunique()
    assert rounds >= 5 and not rows.duplicated(["arm", "seed"]).any()
    assert set(rows.groupby("arm")["seed"].agg(tuple)) == {tuple(range(rounds))}


def test_what_is_timed_is_what_is_trained_under_the_same_name(benchmark):
    trained = {arm.label: arm.config.objective
               for arm in ledger_arms("flickr8k", choose("12_claims", "full"))}
    assert set(benchmark.OBJECTIVES) >= TIMED
    start = benchmark.base_config("scenes", "vsepp+gru", choose("05_listwise", "quick"))
    for label, terms in benchmark.OBJECTIVES.items():
        if label in trained:
            assert benchmark.sum_of(start, *terms).objective == trained[label], label
    assert set(benchmark.OBJECTIVES) <= set(trained)


def test_objectives_take_turns_and_the_first_steps_are_left_out(benchmark, monkeypatch):
    taken, names = [], list(benchmark.OBJECTIVES)
    left = iter(names)

    def fake_steps(*_):
        name, count = next(left), 0
        while True:
            taken.append(name)
            count += 1
            yield 1000.0 if count <= 2 else float((count - 3) % 3)  # 0, 1, 2 in each round

    monkeypatch.setattr(benchmark, "steps", fake_steps)
    monkeypatch.setattr(benchmark, "build_model", lambda *_: nn.Linear(1, 1))
    monkeypatch.setattr(benchmark, "build_objective", lambda objective: objective)
    monkeypatch.setattr(benchmark, "encoded_data", lambda *_: SimpleNamespace(
        inputs=None, splits={"train": None}))
    # A generator starts at its first step: names are given in the order of the first turn.
    table = benchmark.measure("vsepp+gru", {"size": 8}, rounds=10, count=3, batch=4)
    assert set(table) == set(COLUMNS)
    assert (table[STEPS] == 1).all()  # the median of a round, none of the first steps
    assert set(table.groupby("arm")["seed"].agg(lambda seeds: tuple(sorted(seeds)))) == {
        tuple(range(10))}
    firsts = Counter(taken[::len(names)])  # who came first, once a turn
    assert len(taken) == len(names) * (2 + 10 * 3) and set(firsts) == set(names)
    assert max(firsts.values()) - min(firsts.values()) <= 1


@pytest.mark.parametrize("lines, named", [
    (["sum,0,-1.5,scenes,m"], "above 0"), (["sum,0,,scenes,m"], "above 0"),
    (["sum,0,0,scenes,m"], "above 0"),
    (["sum,0,inf,scenes,m"], "above 0"), (["sum,0,fast,scenes,m"], "above 0"),
    (["sum,0,1.5,scenes,m", "sum,0,1.6,scenes,m"], "a round twice"),
    (["sum,0,1.5,scenes,m", "sum,1,1.6,coco,m"], "several data sets")])
def test_a_table_that_the_benchmark_did_not_leave_is_refused(evidence, lines, named):
    path = evidence / "common" / "steps.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["arm,seed,step_milliseconds,dataset,model", *lines, ""]))
    with pytest.raises(ValueError, match=f"steps.csv.*{named}.*measure again"):
        timed_rows("steps")


@pytest.mark.parametrize("given, told", [
    (["--save", "--rounds", "1"], "--rounds must be at least 5, got 1"),
    (["--save", "--rounds", "0"], "--rounds must be at least 5"),
    (["--save", "--images", "5000"], "--save measures 1,000 images and 5,000 texts: leave"),
    (["--save", "--repeats", "3"], "leave --images, --texts and --repeats out"),
    (["--images", "100"], "--images must be at least 150")])
def test_what_would_spoil_the_committed_rounds_is_refused(monkeypatch, capsys, given, told):
    """`--rounds 1` would have kept one round in the place of twelve."""
    benchmark = loaded(monkeypatch, "rerank")
    for name in ("save", "check_equal", "child"):
        monkeypatch.setattr(benchmark, name, lambda *_: pytest.fail("it measures"))
    monkeypatch.setattr("sys.argv", ["rerank.py", *given])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert told in capsys.readouterr().err


def test_enough_rounds_are_kept(monkeypatch):
    benchmark, kept = loaded(monkeypatch, "rerank"), []
    monkeypatch.setattr(benchmark, "check_equal", lambda: None)
    monkeypatch.setattr(benchmark, "save", kept.append)
    monkeypatch.setattr("sys.argv", ["rerank.py", "--save", "--rounds", "5"])
    benchmark.main()
    assert kept == [5]


def test_re_rankers_take_turns_and_plain_ranks_are_taken_off(monkeypatch):
    benchmark = loaded(monkeypatch, "rerank")
    clock, names = [0.0], []
    cost = {"plain": 1.0, "fast": 3.0, "reciprocal": 5.0, "multi": 9.0}

    def way(name):
        def rerank(scores):
            names.append(name)
            clock[0] += cost[name] + (100 if len(names) <= len(RERANKERS) else 0)  # the first turn
            return scores
        return rerank

    monkeypatch.setattr(benchmark, "RERANKERS", {name: way(name) for name in RERANKERS})
    monkeypatch.setattr(benchmark, "ranks", lambda scores, owner: clock.__setitem__(
        0, clock[0] + cost["plain"]))
    monkeypatch.setattr(benchmark.time, "process_time", lambda: clock[0])
    table = benchmark.in_turns(10, 50, rounds=6, turns=3)
    assert tuple(table) == ("arm", "seed", RERANKING, "dataset", "model")
    assert table.groupby("arm")[RERANKING].unique().map(list).to_dict() == {
        "fast": [3.0], "reciprocal": [5.0], "multi": [9.0]}
    assert len(table) == 3 * 6 and not table.duplicated(["arm", "seed"]).any()
    assert len(set(names[::3])) == 3  # each comes first in some turn


def test_growth_is_of_the_time_beyond_plain_ranks_on_two_sizes_in_one_round(monkeypatch):
    """FR takes 2 and 8 seconds, RR 4 and 32, MR 8 and 16; the first round, ten times that, is
    left out, and of five turns on the smaller size one that is slow."""
    benchmark, clock, turns = loaded(monkeypatch, "growth"), [0.0], Counter()
    cost = {"fast": (2, 8), "reciprocal": (4, 32), "multi": (8, 16)}

    def way(name):
        def rerank(scores):
            large = len(scores) > 10
            turns[name, large] += 1
            clock[0] += cost[name][large] * (10 if turns[name, True] == 0 else 1)
            clock[0] += 50 * (not large and turns[name, large] % 5 == 3)
            return scores
        return rerank

    monkeypatch.setattr(benchmark, "RERANKERS", {name: way(name) for name in cost})
    monkeypatch.setattr(benchmark, "ranks", lambda scores, owner: clock.__setitem__(
        0, clock[0] + len(scores)))
    monkeypatch.setattr(benchmark.time, "process_time", lambda: clock[0])
    table = benchmark.in_turns({(10, 50): 5, (20, 100): 1}, rounds=6)
    assert tuple(table) == ("arm", "seed", GROWTH, "dataset", "model")
    assert table["model"].unique() == ["10 images and 50 texts, then 20 and 100"]
    for name, (small, large) in cost.items():
        grown = table[table["arm"] == name].sort_values("seed")
        assert grown["seed"].tolist() == list(range(6))
        assert grown[GROWTH].tolist() == pytest.approx([100 * np.log(large / small)] * 6)
        assert turns[name, False] == 5 * 7 and turns[name, True] == 7


def test_fewer_rounds_than_a_verdict_needs_are_refused(monkeypatch, capsys):
    benchmark = loaded(monkeypatch, "growth")
    monkeypatch.setattr(benchmark, "in_turns", lambda *_: pytest.fail("it measures"))
    monkeypatch.setattr("sys.argv", ["growth.py", "--save", "--rounds", "4"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "--rounds must be at least 5, got 4" in capsys.readouterr().err


@pytest.mark.slow
def test_what_scores_take_is_kept_with_what_it_was_measured_on(monkeypatch, evidence, capsys):
    """Each model in a process of its own, whose peak is its own."""
    benchmark, path = loaded(monkeypatch, "cross_attention"), times_file("scoring")
    monkeypatch.setattr(benchmark, "WHOLE", (4, 6))
    monkeypatch.setattr("sys.argv", ["cross_attention.py", "--full", "--regions", "3", "--save"])
    benchmark.main()
    told = capsys.readouterr().out
    assert "saf, 4 x 6: " in told and "sgr, 4 x 6: " in told
    table = pd.read_csv(path, dtype={"commit": str})
    assert path == evidence / "common" / "scoring.csv" and tuple(table) == benchmark.SCORING
    assert table["model"].tolist() == ["saf", "sgr"]
    assert table[["images", "texts", "regions", "threads"]].drop_duplicates().values.tolist() == [
        [4, 6, 3, 1]]
    assert (table["peak_mb"] > 100).all() and (table["peak_mb"] > table["memory_mb"]).all()
    assert table["device"].str.startswith("cpu ").all() and table["instructions"].notna().all()
    assert table["software"].str.contains('"torch":').all()
    assert table["commit"].fillna("").eq(git_commit()).all()
    path.unlink()
    monkeypatch.setattr(benchmark, "full", lambda *_: table)
    monkeypatch.setattr("sys.argv", benchmark.sys.argv[:-1])
    benchmark.main()
    assert not path.exists()


@pytest.mark.evidence
def test_the_committed_scores_took_what_is_promised():
    """1,000 x 5,000 pairs of the study's size in two minutes and 2 GB on two cores."""
    kept = pd.read_csv(times_file("scoring")).set_index("model")
    assert list(kept.index) == ["saf", "sgr"]
    assert (kept[["images", "texts", "regions", "threads"]] == [1000, 5000, 36, 2]).all(axis=None)
    assert (kept["wall_seconds"] <= 120).all() and (kept["peak_mb"] <= 2048).all()


@pytest.mark.parametrize("given, told", [
    (["--save"], "--save and --size are of --full"), (["--size", "4", "6"], "are of --full"),
    (["--full", "--save", "--models", "saf"], "--save keeps all models at 1,000 images and 5,000"),
    (["--full", "--save", "--size", "4", "6"], "leave --models and --size out")])
def test_what_would_spoil_the_kept_scores_is_refused(monkeypatch, capsys, given, told):
    benchmark = loaded(monkeypatch, "cross_attention")
    for name in ("compare", "full"):
        monkeypatch.setattr(benchmark, name, lambda *_: pytest.fail("it measures"))
    monkeypatch.setattr("sys.argv", ["cross_attention.py", *given])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.evidence
def test_the_page_on_scale_holds_what_its_tool_prints(capsys):
    scale.main()
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert page.endswith(capsys.readouterr().out)
