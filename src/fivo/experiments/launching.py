"""A job of a sweep as a separate process, on this machine or on one that a scheduler chose."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from fivo.experiments.lease import stands
from fivo.files import write_atomically
from fivo.memory import keeping_memory

POLL_SECONDS = 0.5
MISTAKE = 2
"""Exit code of what will fail again, such as a loss that became NaN."""
STOPPED = 3
_thread = threading.local()


class Outcome(NamedTuple):
    """How a job ended; `sentence` is the last line that it wrote."""

    code: int
    sentence: str


def take_cores(free: "SimpleQueue[list[int]]") -> None:
    """Give this thread's jobs some cores for themselves."""
    _thread.cores = free.get()


def launch(job: dict[str, Any]) -> Outcome:
    """Run a job to its end, or until its sweep has ended."""
    if not stands(job["lease"], job["token"]):
        return Outcome(STOPPED, "its sweep has ended")
    directory = Path(job["directory"])
    directory.mkdir(parents=True, exist_ok=True)
    job = {**job, "parent": os.getpid(), "cores": getattr(_thread, "cores", None)}
    file, log = directory / "job.json", directory / "worker.log"
    write_atomically(file, json.dumps(job, indent=2).encode())
    with open(log, "ab") as output:  # a crash that is tried again stays on record
        before = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "fivo.experiments.worker", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=keeping_memory(os.environ),
            # Ctrl-C is for the sweep, which then ends its jobs.
            start_new_session=True,
        )
        try:
            code = _wait(process, job)
        finally:
            process.kill()
            process.wait()
    lines = log.read_bytes()[before:].decode(errors="replace").strip().splitlines()
    return Outcome(code, lines[-1].strip() if lines else f"the process ended with code {code}")


def _wait(process: subprocess.Popen, job: dict[str, Any]) -> int:
    while True:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if not stands(job["lease"], job["token"]):
                process.kill()  # a run killed at any moment resumes from its checkpoint
