"""Commands that are sent a signal at a chosen instant."""

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fivo import serialization
from fivo.training import RunDirectory
from tests.music import command_line, environment

SECONDS = 3.0
"""How long a command may take to end after Ctrl-C."""


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float
    """From the signal to the end."""
    ours: bool
    """Whether the package had begun to run when the signal came; before that, Python itself ends the process."""


def send(arguments: list[object], cache: Path, when: Callable[[subprocess.Popen], None], number: int) -> Ended:
    """Start a command, wait for `when` to return, and send it a signal."""
    process = subprocess.Popen(
        command_line(*arguments),
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    when(process)
    ours = is_ours(process)
    sent = time.monotonic()
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Ended(process.returncode, out, err, time.monotonic() - sent, ours)


def after(seconds: float) -> Callable[[subprocess.Popen], None]:
    """Wait from the process's start, or until it ended by itself."""

    def wait(process: subprocess.Popen) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.001)

    return wait


def until(condition: Callable[[], object], then: float = 0.0) -> Callable[[subprocess.Popen], None]:
    """Wait for something to be true, and then a little more."""

    def wait(process: subprocess.Popen) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(then)

    return wait


def is_ours(process: subprocess.Popen) -> bool:
    """Whether the package holds back or handles SIGTERM, which Python by itself leaves alone."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False
    masks = dict(re.findall(r"^(SigBlk|SigCgt):\s*([0-9a-f]+)$", status, re.MULTILINE))
    return any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks.values())


def assert_true_of_the_run(sentence: str, directory: Path) -> None:
    """The sentence names the checkpoint that there is, or says that there is none."""
    latest = RunDirectory(directory).latest
    if latest.exists():
        step = serialization.read_metadata(latest)["step"]
        assert f"run the same command again to resume from the checkpoint of step {step}." in sentence
    else:
        assert "no checkpoint" in sentence


def children(process: subprocess.Popen) -> list[int]:
    """The processes that a process's threads have started."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
