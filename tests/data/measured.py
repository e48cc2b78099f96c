"""Reading a file in a process of its own, whose memory and time are measured."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEMORY = 64 << 20
"""A budget that is quickly reached."""
SLACK = 16 << 20
"""What the interpreter, the allocator and temporary blocks add."""

# The limits keep the machine alive should a reader fail.
_CODE = """
import json, resource, sys, time
import mido, numpy, soundfile
from fivo import data
from fivo.data import budget
from fivo.errors import InputError

def status(key):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(key))

function, paths, memory, options = json.loads(sys.argv[1])
budget.MEMORY = memory or budget.MEMORY
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
before, outcomes = status("VmRSS"), []
for path in paths:
    start = time.process_time()
    try:
        getattr(data, function)(path, **options)
        sentence = ""
    except InputError as error:
        sentence = str(error)
    outcomes.append([sentence, time.process_time() - start, status("VmHWM") - before])
print(json.dumps(outcomes))
"""


@dataclasses.dataclass(frozen=True)
class Measured:
    """The sentence of a refusal (empty if there was none), seconds of processor time, and bytes at the peak so far."""

    sentence: str
    seconds: float
    peak: int


def measured(*paths: Path, function: str = "load", memory: int | None = MEMORY, **options: Any) -> list[Measured]:
    """Read each with a function of `fivo.data` and a budget of `memory` bytes; `None` is the real budget."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the memory of a process is measured through /proc, which is not here")
    arguments = json.dumps([function, [str(path) for path in paths], memory, options])
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CODE, arguments], capture_output=True, text=True, check=False, timeout=90
    )
    assert ran.returncode == 0, ran.stderr
    return [Measured(*outcome) for outcome in json.loads(ran.stdout)]
