import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from itr_study.runs.identity import identify
from itr_study.runs.run import execute
from itr_study.runs.store import RunStore
from itr_study.training.checkpoints import Checkpoints
from tests.small_runs import SMALL

SLOW = SMALL.with_(**{"settings.epochs": 100000})


def start(*arguments, **named):
    return subprocess.Popen([sys.executable, "-m", "itr_study.runs.worker", *map(str, arguments)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named)


def write(folder, name, config):
    (folder / name).write_text(config.model_dump_json())
    return folder / name


def wait_until_running(config, process):
    run = identify(config).run
    end = time.monotonic() + 60
    while (RunStore().status(run) or {}).get("state") != "running":
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    return run


def test_files_are_run_one_after_another_and_answered(store, tmp_path):
    (tmp_path / "bad.json").write_text('{"dataset": "scenes"}')
    files = [write(tmp_path, "a.json", SMALL), tmp_path / "bad.json",
             write(tmp_path, "b.json", SMALL.with_(seed=1))]
    process = start(*files)
    out, err = process.communicate(timeout=120)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["state"] for answer in answers] == ["done", "failed", "done"], err
    assert answers[0]["run"] == identify(SMALL).run and "images" in answers[1]["reason"]
    assert process.returncode == 1
    facts = RunStore().result(answers[0]["run"]).facts
    assert facts["device"].startswith("cpu")


def test_sigterm_saves_and_says_interrupted(store, tmp_path):
    process = start(write(tmp_path, "slow.json", SLOW))
    run = wait_until_running(SLOW, process)
    while not (store / "runs" / run / "metrics.jsonl").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143 and out == "", err
    assert RunStore().status(run)["state"] == "interrupted"
    assert "stopped in epoch" in RunStore().status(run)["reason"]
    assert len(Checkpoints(store / "runs" / run / "checkpoints").names()) == 1


@pytest.mark.skipif(os.name == "nt", reason="processes end otherwise there")
def test_a_worker_ends_with_its_parent(store, tmp_path):
    """The parent starts a worker, tells its process id, and is killed."""
    path = write(tmp_path, "slow.json", SLOW)
    code = ("import os, subprocess, sys\n"
            "worker = subprocess.Popen([sys.executable, '-m', 'itr_study.runs.worker',\n"
            f"    {str(path)!r}, '--parent', str(os.getpid())], start_new_session=True)\n"
            "print(worker.pid, flush=True)\nworker.wait()\n")
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    wait_until_running(SLOW, parent)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    psutil.wait_procs([worker], timeout=5)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


def test_two_processes_on_one_run_train_it_once(store, tmp_path):
    """Both answer with the same run; the second waits, then reads."""
    config = SMALL.with_(**{"settings.epochs": 40})
    path = write(tmp_path, "a.json", config)
    both = [start(path), start(path)]
    outs = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert outs[0] == outs[1] and outs[0]["state"] == "done"
    result = execute(config)
    # a second training would have begun the history anew with its own times
    pids = {RunStore().status(result.run)["pid"]}
    assert pids <= {process.pid for process in both}
    assert len(result.history.rows) == 40
