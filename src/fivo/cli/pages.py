"""Heavy commands start anew with settings of memory that hold from a process's beginning."""

import os
import sys
from collections.abc import Mapping, Sequence

from fivo.memory import VARIABLE, keeping_memory

HEAVY = ("train", "evaluate", "demo")
"""The jobs of a sweep are given theirs by what launches them."""


def large_pages() -> None:
    """Start a heavy command anew, with memory in large pages that is kept."""
    environment = wanted_environment(sys.argv, os.environ)
    if environment is not None:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def wanted_environment(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, str] | None:
    """The environment to start anew with, or None where this process will do."""
    heavy = len(arguments) > 1 and arguments[1] in HEAVY and not {"--help", "-h"} & set(arguments)
    if not heavy or VARIABLE in environment:
        return None
    wanted = keeping_memory(environment)
    return wanted if VARIABLE in wanted else None
