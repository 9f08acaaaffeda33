"""Work in threads, results in order. Networks and decoders release the interpreter lock."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(function: Callable[[Job], Result], jobs: Iterable[Job],
             workers: int) -> Iterator[Result]:
    """Yield function(job) for each job, in order, with at most 2 * workers results waiting.

    Each worker is one thread of torch, so that results do not depend on the number of workers.
    When the consumer stops or a job fails, jobs not begun are dropped.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(function, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)
