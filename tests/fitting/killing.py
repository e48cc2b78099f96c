"""Processes that are killed while they train."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from fivo.training import RunDirectory


def last_step(directory: Path) -> int:
    return max((row["step"] for row in RunDirectory(directory).metrics()), default=0)


def kill_while_training(
    command: list[str], directory: Path, environment: dict[str, str], cwd: Path, rng: np.random.Generator
) -> int:
    """Start a command, kill it at a random instant after it has got further in a run, and say how far it had got."""
    before = last_step(directory)
    with subprocess.Popen(command, env=environment, cwd=cwd, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 240
        while last_step(directory) <= before:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
    return last_step(directory)


def finish(command: list[str], environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess:
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done
