"""Coarse parallelism: whole tokens or whole subspaces a thread, one BLAS thread each."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """Number of threads: ``LAYERGEOM_THREADS``, or the cores this process may use."""
    asked = os.environ.get("LAYERGEOM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], most: int | None = None
) -> list[Result]:
    """Apply ``function`` to every item, in order of the items, on at most ``most`` threads.

    LAPACK calls on small matrices do not scale with BLAS threads, so the threads go to the
    items and BLAS is held to one; the result does not depend on how many there are.
    """
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(max_workers=min(thread_count(), most or thread_count())) as pool,
    ):
        return list(pool.map(function, items))
