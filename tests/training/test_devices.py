"""Devices by name, a card a run, float32 on a card: with cards that are only told of."""

import json
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

from itr_study.arithmetic import OPTIMIZER, SEQUENCES
from itr_study.lab.runs import run, sweeps
from itr_study.lab.runs.background import BackgroundRun
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.rows import make_row
from itr_study.lab.runs.run import Answer, Job, attempt, execute
from itr_study.lab.studies import nb05_listwise as batches
from itr_study.lab.studies.arms import ArmRun, train_arms
from itr_study.training import devices, loop
from itr_study.training.devices import (
    choose_device,
    claimed,
    float32_products,
    missing_kernels,
    runs_on,
)
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from tests.cards import Card, put_in
from tests.small import SmallData, SmallLoss, small_model
from tests.small_runs import SMALL

CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize(("name", "expected"), [
    ("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("cuda:1", "cuda:1"),
    ("cpu", "cpu")])
def test_a_name_is_one_device_of_several(monkeypatch, name, expected):
    put_in(monkeypatch, Card(), Card())
    assert str(choose_device(name)) == expected


@pytest.mark.parametrize(("count", "there"), [(1, "there is cuda:0;"),
                                              (2, "there are cuda:0, cuda:1;")])
def test_a_card_that_is_not_here_is_refused_with_those_that_are(monkeypatch, count, there):
    put_in(monkeypatch, *[Card()] * count)
    with pytest.raises(ValueError, match=f"'cuda:5' is not here: {there} take one of them, auto"):
        choose_device("cuda:5")


@pytest.mark.parametrize("name", ["cuda:x", "cuda:-1", "", None, 1, "Cuda"])
def test_what_is_no_name_of_a_device_is_refused(monkeypatch, name):
    put_in(monkeypatch, Card(), Card())
    with pytest.raises(ValueError, match="device must be one of auto, cpu, cuda; got "):
        choose_device(name)


def test_mps_is_never_taken_by_itself(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    put_in(monkeypatch)
    assert str(choose_device("auto")) == "cpu"


def test_a_card_without_kernels_is_left_out_and_refused_by_name(monkeypatch):
    put_in(monkeypatch, Card(capability=(6, 1)), Card())
    with warnings.catch_warnings(action="error"):
        assert str(choose_device("auto")) == str(choose_device("cuda")) == "cuda:1"
    with pytest.raises(ValueError, match=r"device 'cuda:0' cannot be used: torch .* has no kernels "
                       r"for cuda:0 \(Card 0, compute capability 6\.1\), only for sm_75, .*sm_120; "
                       "run: make clean-venv; make TORCH_INDEX=https://.*/cu126 venv"):
        choose_device("cuda:0")


def test_where_no_card_works_auto_takes_the_cpu_and_says_why(monkeypatch):
    put_in(monkeypatch, Card(capability=(12, 0)), built=("sm_80", "sm_90"))
    with pytest.warns(RuntimeWarning, match="the CPU is taken: torch .* no kernels for cuda:0 .*"
                      "capability 12.0.*/cu130 venv"):
        assert str(choose_device("auto")) == "cpu"
    with pytest.raises(ValueError, match="device 'cuda' cannot be used: .*/cu130 venv"):
        choose_device("cuda")


@pytest.mark.parametrize(("arch", "capability", "runs"), [
    ("sm_75", (7, 5), True), ("sm_75", (8, 6), False), ("sm_80", (8, 9), True),
    ("sm_86", (8, 0), False), ("sm_120", (12, 0), True), ("sm_120", (10, 0), False),
    ("sm_90a", (9, 0), True), ("sm_100a", (10, 3), False), ("sm_100f", (10, 3), True),
    ("compute_90", (12, 0), True), ("compute_90", (8, 6), False), ("gfx90a", (9, 0), True)])
def test_which_code_runs_on_which_card(arch, capability, runs):
    assert runs_on(arch, capability) == runs


def test_a_build_that_names_no_architecture_is_taken_at_its_word(monkeypatch):
    put_in(monkeypatch, Card(), built=())
    assert missing_kernels(0) == ""


def taken(name: str, count: int) -> list[str]:
    """The devices of runs that are at work at once, started one after the other."""
    with ExitStack() as runs:
        return [str(runs.enter_context(claimed(name))) for _ in range(count)]


def test_runs_at_once_are_spread_over_the_cards_before_two_are_on_one(monkeypatch, store):
    emptied = put_in(monkeypatch, Card(), Card(), Card(capability=(6, 1)))
    assert taken("auto", 5) == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"]
    assert len(emptied) == 5  # for others to have
    assert taken("cuda", 2) == ["cuda:0", "cuda:1"]  # all places were given back
    assert taken("cuda:1", 3) == ["cuda:1"] * 3
    with claimed("cuda:0"):
        assert taken("auto", 2) == ["cuda:1", "cuda:0"]
    assert taken("cpu", 2) == ["cpu", "cpu"]


def test_several_are_on_a_card_only_while_they_fit(monkeypatch, store, capsys):
    """By its size a card of 8 GiB has one place; one of 24 has more, which others may fill."""
    monkeypatch.setattr(devices, "LOOK", 0.01)
    put_in(monkeypatch, Card(total=8, free=1), Card(total=24, free=5.9))
    with claimed("auto") as first:
        with claimed("auto") as second, ThreadPoolExecutor(1) as other:
            third = other.submit(taken, "auto", 1)
            with pytest.raises(TimeoutError):
                third.result(timeout=0.3)
            monkeypatch.setattr(torch.cuda, "mem_get_info", lambda card: (6 << 30, 24 << 30))
            assert third.result(timeout=60) == ["cuda:1"]
        assert (str(first), str(second)) == ("cuda:0", "cuda:1")
    assert capsys.readouterr().err == "Other runs are on cuda:0, cuda:1; waiting for a place\n"


def test_a_place_is_given_back_after_an_error(monkeypatch, store):
    put_in(monkeypatch, Card(total=8))
    monkeypatch.setattr("itr_study.training.devices.time.sleep", pytest.fail)  # it need not wait
    with pytest.raises(RuntimeError, match="a kernel failed"), claimed("cuda"):
        raise RuntimeError("a kernel failed")
    assert taken("auto", 1) == ["cuda:0"]


@pytest.mark.parametrize(("device", "expected"), [("auto", {"cuda:0", "cuda:1"}),
                                                  ("cuda:1", {"cuda:1"}), ("cpu", {"cpu"})])
def test_jobs_at_once_are_trained_on_cards_of_their_own(monkeypatch, store, device, expected):
    """As in two workers, of one notebook or of two; their ids are those of a CPU."""
    ids = [identify(SMALL.with_(seed=seed)).id for seed in (0, 1)]
    put_in(monkeypatch, Card(), Card())
    both, trained = threading.Barrier(2), {}

    def train(of, root, store, device, save_seconds):
        trained[of.id] = str(device)
        both.wait(timeout=60)
        raise RuntimeError("nothing computes on such a card")

    monkeypatch.setattr(run, "_train", train)
    jobs = [Job(config=SMALL.with_(seed=seed), device=device).model_dump_json() for seed in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        answers = [Answer.model_validate_json(text) for text in threads.map(attempt, jobs)]
    assert all("such a card" in answer.reason for answer in answers)
    assert set(trained) == set(ids) and set(trained.values()) == expected


def test_a_device_goes_on_to_whatever_trains(monkeypatch, store):
    """From a sweep of arms to its jobs, from a searcher to its model, and into what is logged."""
    put_in(monkeypatch, Card(), Card())
    asked = []
    monkeypatch.setattr(sweeps, "attempt", lambda job: asked.append(
        Job.model_validate_json(job).device) or Answer(state="failed").model_dump_json())
    arms = [ArmRun("k=1", SMALL)]
    train_arms(arms, workers=0, device="cuda:1")

    def noting(*arguments, device, **named):
        asked.append(device)
        raise RuntimeError("nothing computes on such a card")

    monkeypatch.setattr(run, "weights", noting)
    monkeypatch.setattr(batches, "fit", noting)
    monkeypatch.setattr(BackgroundRun, "__init__", noting)
    for train in (lambda: run.searcher(SMALL, device="cuda:1"),
                  lambda: batches.batch_log(arms, device="cuda:1"),
                  lambda: BackgroundRun(SMALL, device="cuda:1")):
        with pytest.raises(RuntimeError, match="such a card"):
            train()
    assert asked == ["cuda:1"] * 4


def settings_of_torch() -> tuple[str, bool]:
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(("device", "matmul", "within"), [
    (torch.device("cpu"), "auto", ("highest", True)), (torch.device("mps"), "auto",
                                                       ("highest", True)),
    (CUDA, "auto", ("high", True)), (CUDA, "highest", ("highest", False)),
    (CUDA, "medium", ("medium", True))])
def test_products_of_float32_are_set_and_put_back(device, matmul, within):
    before = settings_of_torch()
    with float32_products(device, matmul):
        assert settings_of_torch() == within
    with pytest.raises(RuntimeError, match="within"), float32_products(device, matmul):
        raise RuntimeError("within")
    assert settings_of_torch() == before == ("highest", True)


def test_on_a_cpu_nothing_is_set(monkeypatch):
    monkeypatch.setattr(torch, "set_float32_matmul_precision", pytest.fail)
    fit(small_model(), SmallLoss(), SmallData(), Settings(epochs=1, batch_size=8), device="cpu")


@pytest.mark.parametrize(("matmul", "expected"), [("auto", "highest"), ("high", "high")])
def test_steps_and_epochs_of_a_training_are_made_so(monkeypatch, matmul, expected):
    seen, step, evaluate = [], loop.take_step, loop.evaluate

    def noting(function):
        def call(*arguments):
            seen.append((function.__name__, torch.get_float32_matmul_precision()))
            return function(*arguments)
        return call

    monkeypatch.setattr(loop, "take_step", noting(step))
    monkeypatch.setattr(loop, "evaluate", noting(evaluate))
    fit(small_model(), SmallLoss(), SmallData(), Settings(epochs=1, batch_size=8, matmul=matmul),
        device="cpu")
    assert set(seen) == {("take_step", expected), ("evaluate", expected)}
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_run_states_how_its_products_were_made_where_they_were_rounded(store, monkeypatch):
    """In its row; its id leaves the default out, and so do rows of a CPU."""
    seen, evaluate = [], run.evaluate

    def noting(*arguments, **named):
        seen.append(torch.get_float32_matmul_precision())
        return evaluate(*arguments, **named)

    monkeypatch.setattr(run, "evaluate", noting)
    high = SMALL.with_(**{"settings.matmul": "high"})
    plain, rounded = ({"features": "", "optimizer": OPTIMIZER, "precision": "float32",
                       "sequences": SEQUENCES} | more for more in ({}, {"matmul": "high"}))
    for config, expected, within in ((SMALL, plain, "highest"), (high, rounded, "high")):
        row = make_row(identify(config), execute(identify(config)))
        assert json.loads(row["arithmetic"]) == expected
        assert seen == [within] * 3
        seen.clear()
    assert "matmul" not in SMALL.with_(**{"settings.matmul": "auto"}).differing()["settings"]
    assert identify(high).id != identify(SMALL).id
    put_in(monkeypatch, Card())
    there = run.computed_with(SMALL, encoded_data(SMALL), CUDA)
    assert there["arithmetic"] == rounded and there["device"] == "cuda Card 0"
    in_full = SMALL.with_(**{"settings.matmul": "highest"})
    assert run.computed_with(in_full, encoded_data(SMALL), CUDA)["arithmetic"] == plain
