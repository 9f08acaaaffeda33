import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from itr_study.files.paths import project_root
from itr_study.lab.processes import MARK
from itr_study.lab.runs.executors import Worker
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import Answer, Job, execute
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.worker import STOP, STOPPED
from itr_study.training.state import Checkpoints
from tests.posix import posix_only
from tests.small_runs import SMALL

SLOW = SMALL.with_(**{"settings.epochs": 100000})


def start(*configs, **named):
    """A worker with one job a config, and no more to come."""
    process = subprocess.Popen([sys.executable, "-m", "itr_study.lab.runs.worker",
                                str(os.getpid())],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **({"text": True} | named))
    for config in configs:
        job = config if isinstance(config, str) else Job(config=config).model_dump_json()
        process.stdin.write(job + "\n")
    process.stdin.close()
    process.stdin = None
    return process


def wait_until_running(config, process):
    run_id = identify(config).id
    end = time.monotonic() + 180
    while (RunStore().status(run_id) or {}).get("state") != "running":
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    return run_id


def test_jobs_are_done_one_after_another_and_answered(store):
    process = start(SMALL, '{"config": {"dataset": "scenes"}}', SMALL.with_(seed=1))
    out, err = process.communicate(timeout=300)
    answers = [Answer.model_validate_json(line) for line in out.splitlines()]
    assert [answer.state for answer in answers] == ["done", "failed", "done"], err
    assert answers[0].id == identify(SMALL).id and "images" in answers[1].reason
    assert process.returncode == 0
    assert RunStore().result(answers[0].id).facts["device"].startswith("cpu")


def test_a_worker_reads_relative_folders_where_its_parent_works(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors").mkdir()
    for split, images in SMALL.data_options.items():
        np.save(tmp_path / "vectors" / f"{split}_images.npy", np.eye(images, dtype=np.float32))
    config = SMALL.with_(objective=[{"loss": "ladder", "labels": "features",
                                     "label_arguments": {"folder": "vectors"}}])
    worker = Worker()
    answer = Answer.model_validate_json(worker.ask(Job(config=config).model_dump_json()))
    assert answer.state == "done" and answer.id == identify(config).id, answer.reason
    assert worker.serves()
    monkeypatch.chdir(tmp_path / "vectors")
    assert not worker.serves()
    worker.end()


@pytest.mark.slow
@posix_only
def test_sigterm_saves_and_says_interrupted(store):
    process = start(SLOW)
    run_id = wait_until_running(SLOW, process)
    while not (store / "runs" / run_id / "metrics.jsonl").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 143 and out == "", err
    assert RunStore().status(run_id)["state"] == "interrupted"
    assert "stopped in epoch" in RunStore().status(run_id)["reason"]
    assert len(Checkpoints(store / "runs" / run_id / "checkpoints").names()) == 1


@pytest.mark.slow
def test_the_line_stop_saves_too(store):
    """In the place of a signal, which Windows does not have."""
    process = subprocess.Popen([sys.executable, "-m", "itr_study.lab.runs.worker",
                                str(os.getpid())],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(Job(config=SLOW).model_dump_json() + "\n")
    process.stdin.flush()
    run_id = wait_until_running(SLOW, process)
    while not (store / "runs" / run_id / "metrics.jsonl").exists():
        time.sleep(0.05)
    out, _ = process.communicate(STOP, timeout=120)
    assert process.returncode == STOPPED and out == ""
    assert RunStore().status(run_id)["state"] == "interrupted"
    assert len(Checkpoints(store / "runs" / run_id / "checkpoints").names()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("job", [
    # raised in code in a string, Python remembers it and ends with the code of SIGINT
    "exec('print(1, file=sys.stderr, flush=True)\\nwhile True: pass')",
    # a library drops it, or it comes when the training has just ended
    "sleep_through()"])
def test_a_stop_is_never_lost(job, tmp_path):
    code = ("import os, sys, time\n"
            "from itr_study.lab.runs import run, worker\n"
            "def sleep_through():\n"
            "    try:\n"
            "        print(1, file=sys.stderr, flush=True)\n"
            "        while True: pass\n"
            "    except BaseException:\n"
            "        return '{}'\n"
            f"def attempt(job): return {job}\n"
            "run.attempt = attempt\n"
            "worker.run(int(sys.argv[1]))\n")
    (tmp_path / "stubborn.py").write_text(code)
    process = subprocess.Popen([sys.executable, "-m", "stubborn", str(os.getpid())], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
                               stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": str(project_root())})
    process.stdin.write("a job\nanother\n")
    process.stdin.flush()
    assert process.stderr.readline() == "1\n"  # it is inside the first
    _, errors = process.communicate(STOP, timeout=60)
    assert process.returncode == STOPPED and "1\n" not in errors


@pytest.mark.slow
def test_a_worker_whose_parent_is_another_ends_at_once():
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        done = subprocess.run([sys.executable, "-m", "itr_study.lab.runs.worker", str(other.pid)],
                              capture_output=True, text=True, timeout=60)
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 1 and f"parent {other.pid} is gone already" in done.stderr


@pytest.mark.slow
def test_a_worker_works_behind_a_launcher(store):
    """As `python.exe` of an environment is on Windows: the parent's id is not the one it is to end
    with, which stands further up."""
    command = [sys.executable, "-m", "itr_study.lab.runs.worker", str(os.getpid())]
    launcher = f"import subprocess, sys; sys.exit(subprocess.call({command!r}))"
    process = subprocess.Popen([sys.executable, "-c", launcher], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, encoding="utf-8")
    out, _ = process.communicate(Job(config=SMALL).model_dump_json() + "\n", timeout=120)
    assert process.returncode == 0 and Answer.model_validate_json(out).state == "done"


@pytest.mark.slow
@posix_only
def test_who_watches_an_ancestor_ends_with_it():
    """The one between lives on: the parent's id alone would say that all is well."""
    watching = ("import os, sys, time; from itr_study.lab.processes import end_with_parent\n"
                "end_with_parent(int(sys.argv[1]), 0.05); print(os.getpid(), flush=True)\n"
                "time.sleep(60)")
    between = ("import subprocess, sys, time\n"
               f"subprocess.Popen([sys.executable, '-c', {watching!r}, sys.argv[1]])\n"
               "time.sleep(60)")
    first = ("import os, subprocess, sys, time\n"
             f"subprocess.Popen([sys.executable, '-c', {between!r}, str(os.getpid())])\n"
             "time.sleep(60)")
    top = subprocess.Popen([sys.executable, "-c", first], stdout=subprocess.PIPE, text=True,
                           env=os.environ | {MARK: ""})
    watcher = psutil.Process(int(top.stdout.readline()))
    middle = watcher.parent()
    try:
        top.kill()
        top.wait()
        top.stdout.close()
        psutil.wait_procs([watcher], timeout=5)
        assert middle.is_running()
        assert not watcher.is_running() or watcher.status() == psutil.STATUS_ZOMBIE
    finally:
        middle.kill()


@pytest.mark.slow
def test_jobs_and_answers_are_utf8_whatever_the_system_writes(store, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    process = start('{"config": {"dataset": "dätä"}}', encoding="utf-8")
    out, _ = process.communicate(timeout=60)
    assert "dätä" in Answer.model_validate_json(out).reason


@pytest.mark.slow
@posix_only
def test_a_worker_ends_with_its_parent(store, tmp_path):
    """The parent starts a worker, tells its process id, and is killed."""
    path = tmp_path / "job.json"
    path.write_text(Job(config=SLOW).model_dump_json() + "\n")
    code = ("import os, subprocess, sys\n"
            "worker = subprocess.Popen([sys.executable, '-m', 'itr_study.lab.runs.worker',\n"
            f"    str(os.getpid())], stdin=open({str(path)!r}), start_new_session=True)\n"
            "print(worker.pid, flush=True)\nworker.wait()\n")
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    wait_until_running(SLOW, parent)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    psutil.wait_procs([worker], timeout=5)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_two_processes_on_one_run_train_it_once(store):
    """Both answer with the same run; the second waits, then reads."""
    config = SMALL.with_(**{"settings.epochs": 40})
    both = [start(config), start(config)]
    answers = [Answer.model_validate_json(process.communicate(timeout=300)[0]) for process in both]
    assert answers[0] == answers[1] and answers[0].state == "done"
    result = execute(identify(config))
    # a second training would have begun the history anew with its own times
    pids = {RunStore().status(result.id)["pid"]}
    assert pids <= {process.pid for process in both}
    assert len(result.history.rows) == 40
