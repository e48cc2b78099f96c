"""What a worker times."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple


class Task(NamedTuple):
    """A prepared computation: `call(i)` is its i-th run and gives numbers, or arrays that may still be computing.

    Runs either follow from each other (training steps) or are over when `call` returns, so a block of runs can be
    timed as a whole. `facts` are what else the preparation found out.
    """

    call: Callable[[int], Any]
    threads: str
    facts: dict[str, Any] = {}  # noqa: RUF012 (a NamedTuple's default, never changed)


def all_threads() -> str:
    """How many threads a library that takes all cores has."""
    return str(len(os.sched_getaffinity(0)))
