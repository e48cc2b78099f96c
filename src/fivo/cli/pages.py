"""Memory in large pages: training allocates and frees megabytes at every step."""

import os
import sys
from collections.abc import Mapping, Sequence

TUNABLE = "glibc.malloc.hugetlb=1"
"""glibc asks for large pages where the kernel gives them on request; other systems ignore the variable."""
HEAVY = ("train", "evaluate", "demo")
"""The jobs of a sweep are given large pages by what launches them."""


def large_pages() -> None:
    """Start a heavy command anew with large pages: they are chosen before a process begins."""
    environment = wanted_environment(sys.argv, os.environ)
    if environment is not None:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def wanted_environment(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, str] | None:
    """The environment to start anew with, or None where this process will do."""
    heavy = len(arguments) > 1 and arguments[1] in HEAVY and not {"--help", "-h"} & set(arguments)
    if not heavy or not sys.platform.startswith("linux") or "GLIBC_TUNABLES" in environment:
        return None
    return {**environment, "GLIBC_TUNABLES": TUNABLE}
