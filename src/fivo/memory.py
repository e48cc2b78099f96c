"""Memory for training, which takes and frees megabytes at every step: in large pages, and kept for the next step.

glibc reads these settings when a process begins; other systems ignore them.
"""

import sys
from collections.abc import Mapping

VARIABLE = "GLIBC_TUNABLES"
KEEPING = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776"


def keeping_memory(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment to start a process with; what the user has set stays."""
    wanted = {VARIABLE: KEEPING} if sys.platform.startswith("linux") else {}
    return {**wanted, **environment}
