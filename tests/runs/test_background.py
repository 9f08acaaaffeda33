"""A run in the background, with real workers: stopped and gone on with it is the same run."""

import subprocess
import sys
import time

import psutil
import pytest
import torch

from itr_study.lab.runs import background
from itr_study.lab.runs.background import BackgroundRun
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore
from tests.posix import posix_only
from tests.small_runs import SMALL

LONG = SMALL.with_(**{"settings.epochs": 120})
PATIENCE = 300  # seconds, on a busy machine


def until(run, what):
    """Look until something is so."""
    end = time.monotonic() + PATIENCE
    while not what(now := run.look()):
        assert time.monotonic() < end, now
        time.sleep(0.02)
    return now


@pytest.mark.slow
def test_stopped_and_gone_on_with_it_is_the_same_run(store, tmp_path):
    run = BackgroundRun(LONG)
    assert run.look() == ("new", "", [], False)
    run.start()
    assert run.look().state == "starting"
    now = until(run, lambda look: look.rows)
    assert now.state == "running"
    other = BackgroundRun(LONG)
    assert other.look().state == "elsewhere"
    with pytest.raises(ValueError, match="process .* trains this run already"):
        other.start()
    with pytest.raises(ValueError, match="there is nothing to stop"):
        other.stop()
    with pytest.raises(ValueError, match="is being trained already"):
        run.start()
    run.stop()
    assert run.wait(PATIENCE)
    now = run.look()
    assert now.state == "interrupted" and now.checkpoint and 0 < len(now.rows) < 120
    run.start()
    assert run.wait(PATIENCE) and run.look().state == "done"
    with pytest.raises(ValueError, match="this run is done already"):
        run.start()
    assert BackgroundRun(LONG).look().state == "done"
    once = execute(identify(LONG), store=RunStore(tmp_path / "once"))
    kept = RunStore().result(once.id)
    ours, theirs = ([{k: v for k, v in row.items() if k != "seconds"} for row in rows]
                    for rows in (run.look().rows, once.history.rows))
    assert ours == theirs
    assert all(torch.equal(kept.weights()[name], tensor)
               for name, tensor in once.weights().items())


@pytest.mark.slow
def test_a_run_is_kept_in_the_store_it_is_given(store, tmp_path):
    run = BackgroundRun(SMALL, store=RunStore(tmp_path / "elsewhere"))
    run.start()
    assert run.wait(PATIENCE) and run.look().state == "done", run.look().reason
    assert RunStore(tmp_path / "elsewhere").result(run.run.id) is not None
    assert RunStore().result(run.run.id) is None


@pytest.mark.slow
def test_a_run_that_fails_says_why_and_can_be_tried_again(store):
    run = BackgroundRun(SMALL.with_(**{"model_arguments.size": 10**9}))
    run.start()
    assert run.wait(PATIENCE)
    now = run.look()
    assert now.state in ("oom", "failed") and now.reason and not now.rows


def test_a_run_without_a_process_is_at_once_as_it_was_before(store, monkeypatch):
    """Its thread may live a moment longer."""
    class Slow(BackgroundRun):
        def _work(self, ready, failed):
            super()._work(ready, failed)
            time.sleep(0.3)

    def none():
        raise OSError("no memory")

    monkeypatch.setattr(background, "Worker", none)
    run = Slow(SMALL)
    with pytest.raises(OSError, match="no memory"):
        run.start()
    assert run.look() == ("new", "", [], False)


KERNEL = ("import time\n"
          "from itr_study.lab.runs.background import BackgroundRun\n"
          "from tests.small_runs import SMALL\n"
          "run = BackgroundRun(SMALL.with_(**{'settings.epochs': 100000}))\n"
          "run.start()\n"
          "while not run.look().rows: time.sleep(0.02)\n"
          "print(run.worker.process.pid, flush=True)\n")
ENDLESS = SMALL.with_(**{"settings.epochs": 100000})


@pytest.mark.slow
def test_a_kernel_that_ends_has_it_save_first(store):
    done = subprocess.run([sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True,
                          timeout=PATIENCE)
    assert not psutil.pid_exists(int(done.stdout))
    now = BackgroundRun(ENDLESS).look()
    assert now.state == "interrupted" and now.checkpoint and "stopped in epoch" in now.reason


@pytest.mark.slow
@posix_only
def test_a_worker_ends_with_its_kernel(store):
    """The kernel starts it, tells its process id, and is killed."""
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL + "time.sleep(600)"],
                              stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(kernel.stdout.readline()))
    kernel.kill()
    kernel.wait()
    kernel.stdout.close()
    psutil.wait_procs([worker], timeout=10)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert BackgroundRun(ENDLESS).look().state == "interrupted"
