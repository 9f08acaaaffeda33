import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pandas as pd
import psutil
import pytest

from itr_study.data.base import DataError
from itr_study.files.paths import project_root
from itr_study.lab import processes
from itr_study.lab.runs import executors, sweeps
from itr_study.lab.runs.executors import SerialExecutor, end_workers, run_in_worker
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import publish
from itr_study.lab.runs.run import Answer, Job, execute
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.sweeps import ended_row, sweep
from itr_study.lab.runs.worker import STOPPED
from itr_study.lab.studies.bases import base
from tests.posix import posix_only
from tests.small_runs import SMALL, count_trainings, photos, without_asked

SLOW = SMALL.with_(**{"settings.epochs": 100000})


def living_workers() -> list[psutil.Process]:
    living = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended since, or is a zombie
            living += [child] * ("itr_study.lab.runs.worker" in " ".join(child.cmdline()))
    return living


@pytest.fixture(autouse=True)
def no_worker_is_left():
    yield
    end_workers()
    assert not living_workers()


def job(config):
    return Job(config=config).model_dump_json()


def answer(future):
    return Answer.model_validate_json(future.result(timeout=180))


def wait_for(condition, seconds=180.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.mark.slow
def test_rows_come_in_the_order_of_configs_whatever_fails(store, tmp_path, capsys,
                                                          monkeypatch):
    """In workers: one diverges, one cannot run, one is there twice."""
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    broken = SMALL.with_(images="no such features")
    good = [SMALL.with_(seed=2), SMALL.with_(seed=1)]
    with pytest.raises(ValueError, match="no such features"):
        sweep([broken], workers=1)  # refused before anything starts
    too_large = SMALL.with_(**{"model_arguments.size": 2 ** 40})
    configs = [good[0], wild, too_large, good[1], good[0]]
    frame = sweep(configs, workers=2)
    assert frame["seed"].tolist() == [2, 0, 0, 1, 2]
    assert frame["status"].tolist() == ["done", "diverged", "oom", "done", "done"]
    assert frame["test_rsum"].notna().tolist() == [True, False, False, True, True]
    assert frame["run"][0] == frame["run"][4]
    lines = capsys.readouterr().err.splitlines()
    said = " ".join(lines)
    assert said.count("run ") == 2 and "is not finite" in said and "out of memory" in said
    assert max(map(len, lines)) <= 100  # JupyterLab breaks longer ones inside a word
    assert RunStore().status(frame["run"][2])["state"] == "oom"
    # numbers do not depend on where a run is executed
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "other"))
    in_this_process = sweep(good, workers=0)
    same = [name for name in in_this_process if not name.startswith(("minutes", "seconds_"))]
    in_workers = frame[same].loc[[0, 3]].reset_index(drop=True)
    pd.testing.assert_frame_equal(in_workers, in_this_process[same], check_dtype=False,
                                  check_exact=True)


def test_a_run_that_another_process_trains_comes_last(store):
    one, two, three = (identify(SMALL.with_(seed=seed)).id for seed in range(3))
    RunStore().set_status(one, "running")  # by this process, which lives
    RunStore().set_status(two, "interrupted")
    assert list(sweeps._free_first([one, two, three])) == [two, three, one]


def test_what_is_there_is_not_trained(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    execute(identify(SMALL))
    frame = sweep([SMALL, SMALL.with_(seed=1)], workers=0)
    assert len(trained) == 2 and frame["status"].tolist() == ["done", "done"]
    sweep([SMALL, SMALL.with_(seed=1)], workers=0)
    assert len(trained) == 2


def test_models_are_trained_again_where_only_rows_are_published(store, evidence, tmp_path,
                                                                monkeypatch):
    """Their rows stay as they are; of a diverged run there is no model to be had."""
    config = photos(monkeypatch)
    wild = config.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                           "settings.optimizer": "sgd"})
    trained = count_trainings(monkeypatch)
    publish(sweep([config, wild], workers=0, root="here")["run"])
    written = (evidence / "photos" / "runs.csv").read_bytes()
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    kept = sweep([config, wild], workers=0, root="here")
    assert len(trained) == 2 and RunStore().result(kept["run"][0]) is None
    for _ in range(2):
        again = sweep([config, wild], workers=0, root="here", weights=True)
        assert len(trained) == 3 and RunStore().result(kept["run"][0]).status == "done"
        pd.testing.assert_frame_equal(again, kept)
        assert (evidence / "photos" / "runs.csv").read_bytes() == written


def test_a_model_that_cannot_be_trained_again_is_told(store, evidence, tmp_path, monkeypatch,
                                                      capsys):
    config = photos(monkeypatch)
    publish(sweep([config], workers=0, root="here")["run"])
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    monkeypatch.setattr(sweeps, "attempt", lambda job: Answer(
        state="failed", reason="no room").model_dump_json())
    row = sweep([config], workers=0, root="here", weights=True).iloc[0]
    assert row["status"] == "failed" and row["reason"] == "no room"
    assert "no room" in capsys.readouterr().err
    assert sweep([config], workers=0, root="here")["status"][0] == "done"


@pytest.mark.slow
def test_any_executor_of_the_standard_library_will_do(store):
    """Each of its threads has a worker of its own, which ends with the thread."""
    with ThreadPoolExecutor(1) as executor:
        frame = sweep([SMALL, SMALL.with_(seed=1)], executor=executor)
        assert frame["status"].tolist() == ["done", "done"]
        (worker,) = living_workers()
        assert RunStore().status(frame["run"][1])["pid"] == worker.pid != os.getpid()
    assert not living_workers()


@pytest.mark.slow
def test_workers_are_kept_for_the_next_sweep_of_as_many(store):
    sweep([SMALL], workers=1)
    (worker,) = living_workers()
    sweep([SMALL.with_(seed=1)], workers=1)
    assert living_workers() == [worker]
    sweep([SMALL.with_(seed=2)], workers=2)
    gc.collect()
    wait_for(lambda: not worker.is_running())


@pytest.mark.slow
@posix_only
def test_a_worker_that_will_not_stop_is_ended_with_what_it_started(store, monkeypatch):
    """Also where that is in a session of its own, which a process group misses."""
    monkeypatch.setattr(executors, "PATIENCE", 0.2)
    code = ("import signal, subprocess, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
            "print(child.pid, flush=True)\ntime.sleep(60)")
    mark = processes.new_mark()
    worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, start_new_session=True,
                              env=os.environ | {processes.MARK: mark})
    child = psutil.Process(int(worker.stdout.readline()))
    worker.stdout.close()
    executors._end(worker, threading.Event(), mark)
    assert worker.poll() == -signal.SIGKILL
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
@posix_only
def test_a_killed_worker_fails_its_run_only(store):
    run_id = identify(SLOW).id
    with ThreadPoolExecutor(1) as executor:
        first = executor.submit(run_in_worker, job(SLOW))
        second = executor.submit(run_in_worker, job(SMALL))
        wait_for(lambda: (RunStore().status(run_id) or {}).get("state") == "running")
        os.kill(RunStore().status(run_id)["pid"], signal.SIGKILL)
        failed = answer(first)
        assert failed.state == "failed"
        assert "signal 9 (SIGKILL), which the system sends" in failed.reason
        assert answer(second) == Answer(state="done", id=identify(SMALL).id)
    assert RunStore().status(run_id)["state"] == "interrupted"


@pytest.mark.slow
def test_a_worker_of_another_home_is_replaced(store, monkeypatch, tmp_path):
    assert Answer.model_validate_json(run_in_worker(job(SMALL))).state == "done"
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "other"))
    assert Answer.model_validate_json(run_in_worker(job(SMALL))).state == "done"
    assert RunStore().result(identify(SMALL).id).folder.is_relative_to(tmp_path / "other")
    assert len(living_workers()) == 1


def saved(store) -> bool:
    return len(list((store / "runs" / identify(SLOW).id / "checkpoints").glob("*-*"))) == 1


@pytest.mark.slow
def test_ending_the_workers_lets_a_training_save(store, monkeypatch):
    """Also without signals: Windows kills a process that is to be terminated."""
    monkeypatch.setattr(subprocess.Popen, "terminate", subprocess.Popen.kill)
    run_id = identify(SLOW).id
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(run_in_worker, job(SLOW))
        wait_for(lambda: (store / "runs" / run_id / "metrics.jsonl").exists())
        end_workers()
        assert answer(future).state == "interrupted"
    assert RunStore().status(run_id)["state"] == "interrupted" and saved(store)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 0.3, 1.5])
def test_a_worker_asked_to_end_while_it_starts_does(store, seconds):
    """A signal that came while it loaded torch was lost, or told as a failure of the run."""
    worker, answers = executors.Worker(), []
    asking = threading.Thread(target=lambda: answers.append(worker.ask(job(SLOW))))
    asking.start()
    time.sleep(seconds)
    worker.end()
    asking.join(timeout=60)
    assert worker.process.returncode == STOPPED
    assert Answer.model_validate_json(answers[0]).state == "interrupted"
    late = Answer.model_validate_json(worker.ask(job(SLOW)))  # its pipe is closed
    assert late.state == "interrupted" and not worker.serves()


POOL = """
import os, signal, threading, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.sweeps import ended_row, sweep
from tests.runs.test_sweeps import SLOW, SMALL, living_workers, saved, wait_for

if __name__ == "__main__":
    store, run_id = RunStore(), identify(SLOW).id

    def disturb():
        running = store.path(run_id) / "metrics.jsonl"
        wait_for(running.exists)
        living_workers()[0].kill()  # its run fails, the other is done
        wait_for(lambda: (store.status(run_id) or {}).get("state") == "failed")
        running.unlink()
        wait_for(running.exists)  # the second sweep
        os.killpg(0, signal.SIGINT)

    threading.Thread(target=disturb, daemon=True).start()
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor:
        print(*sweep([SLOW, SMALL], executor=executor)["status"], flush=True)
        try:
            sweep([SLOW], executor=executor)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print(store.status(run_id)["state"], saved(store.folder.parent), living_workers(), flush=True)
"""


@pytest.mark.slow
@posix_only
def test_a_pool_of_processes_serves_too(store, tmp_path):
    """A worker of it is killed; then all are interrupted, as by Ctrl-C."""
    (tmp_path / "pool.py").write_text(POOL)
    done = subprocess.run([sys.executable, tmp_path / "pool.py"], capture_output=True, text=True,
                          timeout=300, start_new_session=True, cwd=project_root(),
                          env=os.environ | {"PYTHONPATH": str(project_root())})
    assert done.stdout.splitlines() == ["failed done", "interrupted", "interrupted True []"], (
        done.stdout + done.stderr)


@pytest.mark.slow
@posix_only
def test_an_interrupt_ends_the_workers_after_they_have_saved(store):
    """What waits is dropped, the executor of the caller stays as it is."""
    def interrupt():
        wait_for(lambda: (store / "runs" / run_id / "metrics.jsonl").exists())
        os.kill(os.getpid(), signal.SIGINT)

    run_id = identify(SLOW).id
    with ThreadPoolExecutor(1) as executor:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            sweep([SLOW, SMALL], executor=executor)
        assert not living_workers() and saved(store)
        assert RunStore().status(run_id)["state"] == "interrupted"
        assert RunStore().status(identify(SMALL).id)["state"] == "queued"
        assert sweep([SMALL], executor=executor)["status"].tolist() == ["done"]


@pytest.mark.slow
def test_an_error_in_the_middle_ends_the_workers_too(store, monkeypatch):
    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(sweeps, "make_row", fail)
    with pytest.raises(OSError, match="no space left"):
        sweep([SMALL, SLOW], workers=1)
    assert not living_workers()


def test_a_worker_that_cannot_start_fails_the_run(store, monkeypatch):
    def fail(*arguments, **named):
        raise OSError("too many processes")

    monkeypatch.setattr(executors.subprocess, "Popen", fail)
    frame = sweep([SMALL], workers=1)
    assert frame["status"][0] == "failed" and "too many processes" in frame["reason"][0]


class Answering(SerialExecutor):
    """Executes nothing and answers "done" for a run of this id."""

    def __init__(self, run_id):
        self.run_id = run_id

    def submit(self, fn, /, *arguments):
        text = Answer(state="done", id=self.run_id).model_dump_json()
        return super().submit(lambda: text)


def test_workers_of_other_code_or_another_home_are_found_out(store):
    for run_id, message in (("0" * 16, "code or files of labels changed"),
                            (identify(SMALL).id, "ITR_STUDY_HOME is another")):
        frame = sweep([SMALL], executor=Answering(run_id))
        assert frame["status"][0] == "failed" and message in frame["reason"][0]


def test_queued_runs_say_so(store):
    class Watching(SerialExecutor):
        def submit(self, fn, /, *arguments):
            states.append([RunStore().status(identify(c).id)["state"] for c in configs])
            return super().submit(lambda: Answer(state="failed").model_dump_json())

    states, configs = [], [SMALL, SMALL.with_(seed=1)]
    sweep(configs, executor=Watching())
    assert states == [["queued", "queued"], ["failed", "queued"]]


@pytest.fixture
def said(monkeypatch) -> list:
    """What a sweep says of how far it is: (label, total, unit), then (done, note) again and again.
    """
    lines = []

    @contextmanager
    def counting(label, total, unit):
        lines.append((label, total, unit))
        yield lambda done, note: lines.append((done, note))

    monkeypatch.setattr(sweeps, "counting", counting)
    monkeypatch.setattr(sweeps, "LOOK", 0.01)
    return lines


@pytest.mark.slow
def test_a_sweep_says_epochs_and_the_newest_dev_rsum(store, said):
    """Not runs alone: one of a minute would stand at 0 until its end."""
    configs = [SMALL.with_(**{"settings.epochs": 30}), SMALL]
    with ThreadPoolExecutor(1) as executor:
        frame = sweep(configs, executor=executor)
    assert said[0] == ("training", 32, "epochs") and said[1] == (0, "0 of 2 runs")
    inside = [note for done, note in said[2:] if 0 < done < 30]
    assert inside and all(note.startswith("0 of 2 runs, loss ") for note in inside)
    assert any("dev RSUM " in note for note in inside)
    assert "1 of 2 runs" in said[-1][1] and said[-1][0] >= 30
    assert frame["status"].tolist() == ["done", "done"]


@pytest.mark.slow
def test_runs_that_are_only_measured_again_are_not_said_to_be_trained(store, said):
    """Their epochs lie behind them: counted, they would stand at 100 % from the start."""
    other = SMALL.with_(seed=1)
    without_asked(execute(identify(SMALL)))
    with ThreadPoolExecutor(1) as executor:
        sweep([SMALL, other], executor=executor, needs=[("reranked",)] * 2)
        assert said[0] == ("training and measuring", 2, "epochs") and said[1][0] == 0
        assert all(done <= 2 for done, _ in said[1:])
        without_asked(RunStore().result(identify(other).id))
        said.clear()
        sweep([SMALL, other], executor=executor, needs=[("reranked",)] * 2)
    assert said[0] == ("measuring", 1, "runs") and said[1] == (0, "")


def test_an_ended_run_is_read_and_no_other_is_trained(store, monkeypatch):
    (row,) = sweep([SMALL], workers=0).to_dict("records")
    trained = count_trainings(monkeypatch)
    assert ended_row(SMALL)["run"] == row["run"]
    assert ended_row(SMALL.with_(seed=7)) is None and not trained


def test_data_that_is_not_here_has_no_ended_runs_but_a_wrong_folder_is_told(tmp_path, evidence):
    photographs = base("flickr8k", "two_branch")
    assert ended_row(photographs) is None
    with pytest.raises(DataError):
        ended_row(photographs, root=tmp_path)
