"""Runs through Dask: a scheduler and workers on this machine, each a process."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from itr_study.files.paths import home, project_root
from itr_study.lab.runs import executors
from itr_study.lab.runs.executors import Cluster, ClusterError, check_workers, connect, describe
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import Answer, Job, execute
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.sweeps import sweep
from itr_study.training.state import Checkpoints
from tests.posix import posix_only
from tests.small_runs import SMALL

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, posix_only]
SECONDS = SMALL.with_(**{"settings.epochs": 60})  # long enough to be killed in the midst
ASK = """
import sys
from itr_study.lab.runs import executors
for address in sys.argv[1:]:
    try:
        executors.Cluster(address)
    except executors.ClusterError as error:
        print(error)
"""
ENDLESS = SMALL.with_(**{"settings.epochs": 100000})


@pytest.fixture(scope="module", autouse=True)
def own_home(tmp_path_factory):
    """An empty store of these tests alone, which workers inherit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITR_STUDY_HOME", str(tmp_path_factory.mktemp("store")))
        patch.setenv("PYTHONPATH", str(project_root()))
        yield


@pytest.fixture(scope="module")
def client(own_home):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0,
                                  dashboard_address=None, silence_logs=50) as local, \
            distributed.Client(local, set_as_default=False) as client:
        yield client


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def epochs(config):
    return len(RunStore().epochs(identify(config).id))


def test_a_sweep_on_a_cluster_gives_the_rows_of_one_here(client, monkeypatch, tmp_path):
    configs = [SMALL.with_(seed=seed) for seed in range(3)]
    there = sweep(configs, cluster=client)
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "other"))
    here = sweep(configs, workers=0)
    measured = [name for name in here if name.startswith(("test_", "dev_", "run"))]
    assert there["status"].tolist() == ["done"] * 3
    assert there[measured].equals(here[measured])


def test_the_environment_names_a_scheduler(client, monkeypatch):
    monkeypatch.setenv("ITR_STUDY_CLUSTER", client.scheduler.address)
    called = []
    check = executors.check_workers
    monkeypatch.setattr(executors, "check_workers", lambda client, job: called.append(
        client) or check(client, job))
    assert sweep([SMALL.with_(seed=10)])["status"].tolist() == ["done"] and len(called) == 1


def test_a_killed_worker_costs_nothing_but_time(client, monkeypatch, tmp_path):
    """The run goes on in the other worker from its last checkpoint; its weights are the same."""
    sender = Cluster(client)
    answer = sender.submit(None, Job(config=SECONDS, save_seconds=0).model_dump_json())
    pids = client.run(os.getpid)
    wait_for(lambda: epochs(SECONDS) > 5)
    [address] = [worker for worker, keys in client.processing().items() if keys]
    os.kill(pids[address], signal.SIGKILL)
    before, least = epochs(SECONDS), []
    while not answer.done():
        least.append(epochs(SECONDS))
        time.sleep(0.01)
    assert Answer.model_validate_json(answer.result()).state == "done"
    assert 5 < before < 60 and min(least) >= before - 1  # it did not begin again
    killed = RunStore().result(identify(SECONDS).id)
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "other"))
    whole = execute(identify(SECONDS))
    assert all((whole.weights()[name] == weight).all() for name, weight in killed.weights().items())


def test_two_clients_with_one_plan_train_each_run_once(client):
    configs = [SMALL.with_(seed=seed) for seed in range(20, 24)]
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        found = []
        threads = [threading.Thread(target=lambda one=one: found.append(
            sweep(configs, cluster=one))) for one in (client, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found[0].equals(found[1]) and (found[0]["status"] == "done").all()
    assert [epochs(config) for config in configs] == [2] * 4


def test_short_tasks_cost_little(client, monkeypatch):
    """200 tasks that do nothing: 5 ms each on two idle cores, the first one left out."""
    monkeypatch.setattr(executors, "train_there", lambda *_: Answer(
        state="done").model_dump_json())
    monkeypatch.setattr(executors, "check_workers", lambda client, job: {})
    sender = Cluster(client)
    sender.submit(None, "{}").result(60)
    start = time.monotonic()
    for future in [sender.submit(None, str(k)) for k in range(200)]:
        assert "done" in future.result(60)
    assert (time.monotonic() - start) / 200 < 0.05


def test_an_interrupt_lets_the_runs_save(client):
    sender = Cluster(client)
    future = sender.submit(None, Job(config=ENDLESS).model_dump_json())
    wait_for(lambda: epochs(ENDLESS) > 2)
    future.cancel()
    sender.end_runs()
    run = identify(ENDLESS).id
    wait_for(lambda: RunStore().state(run) == "interrupted", 30)
    assert Checkpoints(RunStore().path(run) / "checkpoints").names()


def test_workers_that_differ_are_refused_by_name(client, monkeypatch):
    job = Job(config=SMALL).model_dump_json()
    check_workers(client, job)  # alike: nothing is said
    assert not list(home().glob("probe-*"))
    address = min(client.scheduler_info()["workers"])
    here = describe(job)
    for told, elsewhere, message in (
            ({"torch": "1.0"}, "", "torch is 1.0, expected"),
            ({"data": "no captions"}, "", "data is no captions, expected"),
            ({"run id": "0" * 16}, "", f"run id is {'0' * 16}, expected"),
            ({"checkout": "1"}, "", "checkout is 1, expected"),
            ({}, "ITR_STUDY_HOME is /x, expected", "ITR_STUDY_HOME is /x")):
        answers = {executors.holds: elsewhere, describe: here | told}
        with monkeypatch.context() as patch:
            patch.setattr(client, "run", lambda asked, *_, answers=answers, **o: {
                address: answers[asked]})
            with pytest.raises(ClusterError, match=re.escape(
                    f"worker {address} would not train as this process does ({message}")):
                check_workers(client, job)
        if told:  # one that came later is asked at its first run
            late = executors.train_there("key", job, job, json.dumps(here | told))
            assert f"expected {[*told.values()][0]})" in Answer.model_validate_json(late).reason
    monkeypatch.setattr(client, "run", lambda *a, **o: {address: ImportError("no itr_study")})
    with pytest.raises(ClusterError, match=f"worker {address} cannot run itr_study.*no itr_study"):
        check_workers(client, job)


def test_without_a_scheduler_or_workers_a_sentence_says_what_to_start(monkeypatch):
    said = {"nonsense": "missing port", "foo://x:1": "unknown address scheme",
            "127.0.0.1:9": ".*refused", "tcp://no.such.machine:8786": ".*not known|.*resolution"}
    done = subprocess.run([sys.executable, "-c", ASK, *said], capture_output=True, text=True)
    for address, why in said.items():
        assert re.search(f"no Dask scheduler answers at {address}: ({why})", done.stdout), done
    assert not done.stderr  # such as what a Client tells that has found nobody
    with pytest.raises(ClusterError, match="no Dask scheduler answers at tcp://127.0.0.1:9.*Start"):
        Cluster("tcp://127.0.0.1:9")
    for nothing in ("", 5):
        with pytest.raises(ClusterError, match=f"must be a Client .*got {nothing!r}"):
            Cluster(nothing)
    monkeypatch.setattr(executors, "FIRST_WORKER", 0.2)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty, \
            distributed.Client(empty, set_as_default=False) as client, \
            pytest.raises(ClusterError, match="has no worker: start some, as `dask worker tcp"):
        sweep([SMALL.with_(seed=40)], cluster=client)


def test_a_scheduler_that_dies_ends_a_sweep_with_one_sentence(tmp_path):
    """What has ended is kept; the command, typed again, trains the rest."""
    environment = os.environ | {"PYTHONPATH": str(project_root())}
    with subprocess.Popen([sys.executable, "-m", "itr_study", "cluster", "--local", "1"],
                          env=environment, stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        address = process.stdout.readline().split()[-1]
        ended, other = SMALL.with_(seed=30), ENDLESS.with_(seed=1)
        assert sweep([ended], cluster=address)["status"].tolist() == ["done"]
        timer = threading.Thread(target=lambda: (
            wait_for(lambda: epochs(other) > 2), os.killpg(process.pid, signal.SIGKILL)))
        timer.start()
        with pytest.raises(ClusterError, match="scheduler at tcp.* is gone. Runs that ended are"):
            sweep([ended, other], cluster=address)
        timer.join()
    assert sweep([ended], workers=0)["status"].tolist() == ["done"]
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        connect(address)  # the lost connection is not taken again
