"""Malloc settings for training, which allocates and frees megabytes at every step: use huge pages, and keep them.

glibc reads them only at start-up; other systems ignore them.
"""

import sys
from collections.abc import Mapping

__all__ = ["KEEPING", "VARIABLE", "keeping_memory"]

VARIABLE = "GLIBC_TUNABLES"
KEEPING = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776"


def keeping_memory(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with the settings for a new process; the user's own settings take precedence."""
    wanted = {VARIABLE: KEEPING} if sys.platform.startswith("linux") else {}
    return {**wanted, **environment}
