"""Families of processes are found, whatever state they are in."""

import subprocess

import psutil
import pytest

from itr_study.lab import processes
from tests.posix import posix_only


@posix_only
def test_a_process_that_is_just_being_started_is_not_overlooked(monkeypatch):
    """For a moment it has no environment: the first two looks do not find it."""
    late = psutil.Process(subprocess.Popen(["sleep", "300"]).pid)
    looks = iter([[], [], [late], [], [], []])
    monkeypatch.setattr(processes, "marked", lambda mark: next(looks))
    processes.kill_marked("any")
    assert late.wait(5) is not None
    assert next(looks, "no look left") == "no look left"


def test_who_watches_ends_even_if_it_cannot_kill_its_family(monkeypatch):
    def cannot(mark):
        raise RuntimeError("cannot end processes [1]")

    codes = []
    monkeypatch.setattr(processes, "kill_marked", cannot)
    monkeypatch.setattr(processes.os, "_exit", codes.append)
    monkeypatch.setenv(processes.MARK, "any")
    with pytest.raises(RuntimeError):
        processes._watch(None, 0.1)
    assert codes == [1]
