"""Families of processes are found, whatever state they are in."""

import os
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper

import psutil
import pytest

from itr_study.lab import processes
from itr_study.lab.processes import replace_letters
from tests.posix import posix_only


def test_an_empty_mark_is_nobodys():
    """Every process's variable begins with it."""
    assert processes.marked("") == []


@posix_only
def test_a_process_that_is_just_being_started_is_not_overlooked(monkeypatch):
    """For a moment it has no environment: the first two looks do not find it."""
    late = psutil.Process(subprocess.Popen(["sleep", "300"]).pid)
    looks = iter([[], [], [late], [], [], []])
    monkeypatch.setattr(processes, "marked", lambda mark: next(looks))
    processes.kill_marked("any")
    assert late.wait(5) is not None
    assert next(looks, "no look left") == "no look left"


@posix_only
@pytest.mark.parametrize("main", [
    "while True: start(); time.sleep(0.02)",  # until it is stopped
    "start().wait(); start()"])  # as a notebook's process that ends when its kernel is dead
def test_what_a_process_starts_while_its_family_is_killed_is_killed_too(main):
    child = ("import subprocess, sys, time\n"
             "from itr_study.lab.processes import end_with_parent\n"
             "end_with_parent(int(sys.argv[1]), 0.05)\n"
             "def start(): return subprocess.Popen(['sleep', '300'], start_new_session=True)\n")
    code = ("import os, subprocess, sys, time\n"
            "subprocess.Popen([sys.executable, '-c', sys.argv[1], str(os.getpid())])\n"
            "time.sleep(300)")
    mark = processes.new_mark()
    parent = subprocess.Popen([sys.executable, "-c", code, child + main],
                              env=os.environ | {processes.MARK: mark})
    try:
        wait_until(lambda: any(p.name() == "sleep" for p in processes.marked(mark)))
        parent.kill()
        wait_until(lambda: not processes.marked(mark))
    finally:
        parent.kill()
        processes.kill_marked(mark)
        parent.wait()


def wait_until(condition, limit=20.0):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def test_who_watches_ends_even_if_it_cannot_start_what_kills_its_family(monkeypatch):
    def cannot(command, env):
        assert processes.MARK not in env  # else those that two members start kill each other
        raise OSError("no more processes")

    codes = []
    monkeypatch.setattr(processes.subprocess, "Popen", cannot)
    monkeypatch.setattr(processes.os, "_exit", codes.append)
    monkeypatch.setenv(processes.MARK, "any")
    with pytest.raises(OSError):
        processes._watch(None, 0.1)
    assert codes == [1]


def test_letters_that_a_console_lacks_cost_no_answer(monkeypatch):
    out, err, given = BytesIO(), BytesIO(), BytesIO(b"caf\xe9\n")
    monkeypatch.setattr("sys.stdout", TextIOWrapper(out, encoding="cp1252"))
    monkeypatch.setattr("sys.stderr", TextIOWrapper(err, encoding="ascii"))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(given, encoding="utf-8"))
    replace_letters()
    print("\u0416\u00e9 \udcff", flush=True)
    print("\u0416", file=sys.stderr, flush=True)
    assert out.getvalue().split() == [b"?\xe9", b"?"] and err.getvalue().split() == [b"?"]
    assert input() == "caf\udce9"
    replace_letters("utf-8")
    print("\u0416 \ud83d", flush=True)
    assert out.getvalue().split()[2:] == ["\u0416".encode(), b"?"]
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}", None)
    replace_letters()
