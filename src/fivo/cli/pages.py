"""Re-execute heavy commands with malloc tunables, which glibc reads only at start-up."""

import os
import sys
from collections.abc import Mapping, Sequence

from fivo.memory import VARIABLE, keeping_memory

HEAVY = ("fit", "train", "evaluate", "demo")
"""The jobs of a sweep get theirs from the process that launches them."""


def large_pages() -> None:
    """Re-execute a heavy command so that it uses huge pages and keeps them between steps."""
    environment = wanted_environment(sys.argv, os.environ)
    if environment is not None:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def wanted_environment(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, str] | None:
    """The environment to re-execute with, or None if this process will do."""
    heavy = len(arguments) > 1 and arguments[1] in HEAVY and not {"--help", "-h"} & set(arguments)
    if not heavy or VARIABLE in environment:
        return None
    wanted = keeping_memory(environment)
    return wanted if VARIABLE in wanted else None
