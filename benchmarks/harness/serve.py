"""The worker's side, `python -m benchmarks.harness.serve`: prepares and times tasks, one JSON object a line."""

import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.task import Task


def main() -> None:
    """Answer until standard input ends."""
    if "BENCH_CPUS" in os.environ:
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, available[: int(os.environ["BENCH_CPUS"])])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the replies
    tasks: dict[str, Task] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = globals()[f"on_{request.pop('do')}"](tasks, **request)
        except Exception as error:
            first_line = (str(error).strip() or "no message").splitlines()[0]
            reply = {"error": f"{type(error).__name__}: {first_line}"}
        print(json.dumps(reply), file=replies, flush=True)


def on_prepare(tasks: dict[str, Task], name: str, target: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make the task `module:function(**arguments)`."""
    module, function = target.split(":")
    tasks[name] = getattr(importlib.import_module(module), function)(**arguments)
    return {"threads": tasks[name].threads, "facts": tasks[name].facts}


def on_run(tasks: dict[str, Task], name: str, first: int, calls: int) -> dict[str, Any]:
    """Time a block of runs, when caches are warm and the threads of whoever had the last turn asleep."""
    call = tasks[name].call
    gc.collect()
    if calls > 1:
        time.sleep(0.2)
        np.asarray(call(first))
    start = time.perf_counter()
    outcomes = [call(first + i) for i in range(calls)]
    values = [np.ravel(np.asarray(outcome, np.float64)).tolist() for outcome in outcomes]
    return {"seconds": time.perf_counter() - start, "values": values}


def on_drop(tasks: dict[str, Task], name: str) -> dict[str, Any]:
    """Forget a task and its memory."""
    del tasks[name]
    gc.collect()
    return {}


def on_memory(tasks: dict[str, Task]) -> dict[str, Any]:
    """The most megabytes this process ever had in memory."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {"peak": int(line.split()[1]) / 1e3}


if __name__ == "__main__":
    main()
