"""How a training stops early: when asked to, and when memory runs out."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Interrupted(KeyboardInterrupt):
    """Asked to stop (SIGTERM, or Ctrl-C) and stopped at a step boundary, everything saved."""


class OutOfMemory(RuntimeError):
    """The device or the machine has no memory left; a batch is never made smaller silently."""


class StopFlag:
    """True once a signal asked to stop; the signal is kept for the message."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def set(self, number: int, frame: object) -> None:
        """Keep the signal; asked twice, stop at once."""
        if self:  # asked twice: at once
            raise Interrupted("stopped at once; the last checkpoint is kept")
        self.signal = number


@contextmanager
def stop_requests() -> Iterator[StopFlag]:
    """Yield a flag that SIGTERM or Ctrl-C sets, so that a step ends and is saved first.

    Outside the main thread Python delivers no signals: there the flag stays unset.
    """
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {number: signal.signal(number, flag.set) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute by one thread: sums have one order, and parallel runs do not slow each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def memory_advice(batch_size: int) -> Iterator[None]:
    """Turn every kind of out-of-memory error into one with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) \
                and "DefaultCPUAllocator" not in str(error):
            raise
        raise OutOfMemory(
            f"out of memory at batch_size={batch_size}. The batch is not made smaller by itself: "
            "negatives come from the batch, so the loss would change. Choose a smaller model or "
            f"precision='bfloat16', or set batch_size yourself. ({error})") from error
