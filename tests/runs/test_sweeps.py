import os
import signal
import threading
import time

import pandas as pd
import psutil
import pytest

from itr_study.runs import executors, identity, sweeps
from itr_study.runs.executors import Answer, Here, Workers
from itr_study.runs.run import execute
from itr_study.runs.store import RunStore
from itr_study.runs.sweeps import close_workers, sweep
from tests.small_runs import SMALL, count_trainings

SLOW = SMALL.with_(**{"settings.epochs": 100000})


@pytest.fixture(autouse=True)
def no_worker_is_left():
    yield
    close_workers()
    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if "itr_study.runs.worker" in " ".join(child.cmdline())]


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def test_rows_come_in_the_order_of_configs_whatever_fails(store, tmp_path, capsys,
                                                          monkeypatch):
    """In workers: one diverges, one cannot run, one is there twice."""
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    broken = SMALL.with_(images="no such features")
    good = [SMALL.with_(seed=2), SMALL.with_(seed=1)]
    with pytest.raises(ValueError, match="no such features"):
        sweep([broken], workers=1, figures=tmp_path)  # refused before anything starts
    too_large = SMALL.with_(**{"model_arguments.size": 2 ** 40})
    configs = [good[0], wild, too_large, good[1], good[0]]
    frame = sweep(configs, workers=2, figures=tmp_path)
    assert frame["seed"].tolist() == [2, 0, 0, 1, 2]
    assert frame["status"].tolist() == ["done", "diverged", "oom", "done", "done"]
    assert frame["test_rsum"].notna().tolist() == [True, False, False, True, True]
    assert frame["run"][0] == frame["run"][4]
    said = capsys.readouterr().err
    assert said.count("run ") == 2 and "is not finite" in said and "out of memory" in said
    assert RunStore().status(frame["run"][2])["state"] == "oom"
    # numbers do not depend on where a run is executed
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "other"))
    here = sweep(good, workers=0)
    same = [name for name in here if name != "minutes"]
    there = frame[same].loc[[0, 3]].reset_index(drop=True)
    pd.testing.assert_frame_equal(there, here[same], check_dtype=False, check_exact=True)


def test_what_is_there_is_not_trained(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    execute(SMALL)
    frame = sweep([SMALL, SMALL.with_(seed=1)], workers=0)
    assert len(trained) == 2 and frame["status"].tolist() == ["done", "done"]
    sweep([SMALL, SMALL.with_(seed=1)], workers=0)
    assert len(trained) == 2


def test_a_killed_worker_fails_its_run_only(store):
    pool = Workers(1)
    pool.submit(SLOW)
    run = identity.identify(SLOW).run
    wait_for(lambda: (RunStore().status(run) or {}).get("state") == "running")
    pool.submit(SMALL)
    os.kill(RunStore().status(run)["pid"], signal.SIGKILL)
    first, second = pool.answers()
    assert first.state == "failed" and "signal 9 (SIGKILL), which the system sends" in first.reason
    assert second == Answer(SMALL, "done", "")
    assert RunStore().status(run)["state"] == "interrupted"
    pool.close()


def test_closing_lets_a_training_save(store):
    pool = Workers(1)
    pool.submit(SLOW)
    pool.submit(SMALL)
    run = identity.identify(SLOW).run
    wait_for(lambda: (store / "runs" / run / "metrics.jsonl").exists())
    threading.Timer(0.1, pool.close).start()
    answer = next(iter(pool.answers()))
    assert answer.config == SLOW and answer.state == "interrupted"
    wait_for(lambda: RunStore().status(run)["state"] == "interrupted")
    assert len(list((store / "runs" / run / "checkpoints").glob("*-*"))) == 1
    pool.close()


def test_an_interrupt_ends_the_workers(store, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Workers, "answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sweep([SMALL], workers=1)
    assert not sweeps._kept


def test_a_worker_that_cannot_start_is_an_answer(store, monkeypatch):
    def fail(*arguments, **named):
        raise OSError("too many processes")

    monkeypatch.setattr(executors.subprocess, "Popen", fail)
    frame = sweep([SMALL], workers=1)
    assert frame["status"][0] == "failed" and "too many processes" in frame["reason"][0]


def test_workers_of_other_code_are_found_out(store, monkeypatch):
    class Elsewhere(Here):
        def answers(self):
            yield Answer(self.waiting.pop(), "done", "")

    frame = sweep([SMALL], executor=Elsewhere())
    assert frame["status"][0] == "failed" and "the code has changed" in frame["reason"][0]


def test_queued_runs_say_so(store):
    class Never(Here):
        def answers(self):
            seen.extend(RunStore().status(identity.identify(c).run)["state"] for c in self.waiting)
            return iter(())

    seen = []
    with pytest.raises(KeyError):
        sweep([SMALL, SMALL.with_(seed=1)], executor=Never())
    assert seen == ["queued", "queued"]
