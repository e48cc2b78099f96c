"""Where jobs run: threads of this process that each hold some cores, or a Dask cluster."""

import logging
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from fivo.errors import InputError
from fivo.experiments.launching import take_cores
from fivo.extras import require

CONNECT_SECONDS = 20


def available_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def shares(cores: list[int], workers: int) -> list[list[int]]:
    """Cores for each of several workers, as equal as they can be; with more workers than cores some share one."""
    if workers >= len(cores):
        return [[cores[worker % len(cores)]] for worker in range(workers)]
    return [cores[worker::workers] for worker in range(workers)]


def default_workers() -> int:
    """One-thread runs side by side, one for each core: `benchmarks/arrangement.py` measures it."""
    return len(available_cores())


@contextmanager
def local_executor(workers: int) -> Iterator[Executor]:
    """Threads that each start one process at a time, pinned to separate cores.

    Args:
        workers: How many.

    Yields:
        The executor for `sweep`.
    """
    if workers < 1:
        raise InputError(f"--workers must be at least 1, got {workers}.")
    free: SimpleQueue[list[int]] = SimpleQueue()
    # Where processes cannot be pinned, the system shares the cores out.
    for share in shares(available_cores(), workers) if hasattr(os, "sched_setaffinity") else [[]] * workers:
        free.put(share)
    with ThreadPoolExecutor(workers, "job", take_cores, (free,)) as pool:
        yield pool


@contextmanager
def cluster_executor(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler; run directories must be on a path that all of them see.

    Args:
        address: Of the scheduler, such as tcp://host:8786.

    Yields:
        The executor for `sweep`.
    """
    distributed = require("distributed", "A sweep on a cluster")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, name="fivo sweep")
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r:.90} ({str(error).splitlines()[0]:.90}); start one with "
            "`dask scheduler` and give its address, say tcp://host:8786."
        ) from None
    with _quietly(client) as executor:
        yield executor


@contextmanager
def client_executor(cluster: Any) -> Iterator[Executor]:
    """The workers of a Dask cluster that this process has started."""
    distributed = require("distributed", "A sweep on a cluster")
    with _quietly(distributed.Client(cluster, timeout=CONNECT_SECONDS, name="fivo sweep")) as executor:
        yield executor


@contextmanager
def _quietly(client: Any) -> Iterator[Executor]:
    # The sweep reports the connection's fate in one sentence; these loggers have their own levels.
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client:
        # Not pure: a run that crashed is the same call once more, and must not be answered from memory.
        yield client.get_executor(pure=False)
