"""Families of processes that end together, whatever ends the first of them.

A kernel starts its own session and so do workers, so killing a process group misses them. All
descendants inherit an environment variable, the family's mark, and are found by it.
"""

import os
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from errno import EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS
from io import TextIOWrapper
from pathlib import Path

import psutil

from itr_study.files.paths import HOME_REMEDY, home

MARK = "ITR_STUDY_FAMILY"
# Of a process that trains. glibc gives every large buffer back to the system and asks for it again
# in the next step. Keeping them saves a recurrent model a quarter of its time where page faults are
# slow (virtual machines); other C libraries ignore these names, and no number depends on them.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**32),
               "MALLOC_TOP_PAD_": str(2**26)}
# The system's errors for a folder that cannot be written.
NOT_WRITABLE = (EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS)
PAUSE = 0.2  # seconds, above what starting a program takes on a busy machine


def replace_letters(encoding: str | None = None) -> None:
    """Write a ? for what a terminal or a file, in this encoding, cannot hold; read any bytes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="replace")
    if isinstance(sys.stdin, TextIOWrapper) and sys.stdin.errors == "strict":
        sys.stdin.reconfigure(errors="surrogateescape")


def plain(error: Exception) -> str:
    """An error's message without what only programmers need."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError):
        return str(error) + remedy(error)
    from itr_study.training.settings import problems

    return problems(error)


def remedy(error: Exception) -> str:
    """What to do about a home that cannot be written; empty for other errors."""
    told = (isinstance(error, OSError) and error.filename
            and (error.errno in NOT_WRITABLE or not home().exists())
            and Path(os.fsdecode(error.filename)).is_relative_to(home()))
    return f"\n{HOME_REMEDY}" * bool(told)


def new_mark() -> str:
    """Make a mark for a new family; a family within a family carries both."""
    return f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"


def marked(mark: str) -> list[psutil.Process]:
    """Find the living processes of a family, the caller left out; an empty mark is nobody's."""
    family = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # has ended; another user's
            if (mark and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
                    and process.environ().get(MARK, "").startswith(mark)):
                family.append(process)
    return family


def kill_marked(mark: str, patience: float = 10.0) -> None:
    """Kill a family, and what it starts meanwhile, until three looks in a row find nobody.

    Raises:  RuntimeError naming the survivors after `patience` seconds.
    """
    end, quiet = time.monotonic() + patience, 0
    while quiet < 3:
        family = marked(mark)
        if not family:
            quiet += 1
            time.sleep(PAUSE)
            continue
        quiet = 0
        if time.monotonic() > end:
            raise RuntimeError(f"cannot end processes {[p.pid for p in family]}; end them by hand")
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=1.0)


def ancestor(pid: int) -> psutil.Process | None:
    """Find the living process of that id that this one comes from, at any distance."""
    return next((process for process in psutil.Process().parents() if process.pid == pid), None)


def end_with_parent(parent: int, interval: float = 0.5) -> None:
    """End this process and its family when `parent`, an id, is gone, as it may be already."""
    threading.Thread(target=_watch, args=(ancestor(parent), interval), daemon=True).start()


def _watch(parent: psutil.Process | None, interval: float) -> None:
    with suppress(psutil.NoSuchProcess):  # another process with its id is not it
        while (parent is not None and parent.is_running()
               and parent.status() != psutil.STATUS_ZOMBIE):
            time.sleep(interval)
    try:
        # A process apart kills the family, so that this one starts nothing more. It bears no mark:
        # those that other members start would kill each other.
        env = dict(os.environ)
        if mark := env.pop(MARK, ""):
            subprocess.Popen([sys.executable, "-P", __file__, mark], env=env)
    finally:
        os._exit(1)


if __name__ == "__main__":
    kill_marked(sys.argv[1])
