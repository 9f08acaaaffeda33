"""Families of processes are found, whatever state they are in."""

import subprocess

import psutil

from itr_study.lab import processes
from tests.posix import posix_only


@posix_only
def test_a_process_that_is_just_being_started_is_not_overlooked(monkeypatch):
    """For a moment it has no environment: the first look does not find it."""
    late = psutil.Process(subprocess.Popen(["sleep", "300"]).pid)
    looks = iter([[], [late], [], []])
    monkeypatch.setattr(processes, "marked", lambda mark: next(looks))
    processes.kill_marked("any")
    assert late.wait(5) is not None
    assert next(looks, "no look left") == "no look left"
