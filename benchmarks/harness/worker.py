"""Processes that time tasks, driven from here, so that all sides of a comparison take turns within one run."""

import json
import os
import selectors
import subprocess
from pathlib import Path
from threading import Lock
from typing import Any

from fivo.memory import keeping_memory

ROOT = Path(__file__).resolve().parents[2]


class WorkerError(Exception):
    """A worker could not do what it was asked; the message says why in one line."""


class Worker:
    """One process with its own interpreter; a request that takes too long or kills it is an error."""

    def __init__(self, name: str, python: str, *, own: bool, cpus: int | None = None, timeout: float = 600) -> None:
        self.timeout = timeout
        self.turn = Lock()
        self.log = ROOT / "build" / "bench-logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = keeping_memory(os.environ)  # as `fivo fit` runs, and the same for all sides
        if not own:
            environment.pop("PYTHONPATH", None)
        if cpus is not None:
            environment["BENCH_CPUS"] = str(cpus)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [python, "-m", "benchmarks.harness.serve"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """The worker's reply; requests from several threads wait for each other."""
        with self.turn:
            return self._ask({"do": do, **request})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self.process
        if process.stdin is None or process.stdout is None or process.poll() is not None:
            raise WorkerError(self._last_words())
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._last_words()) from None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self.timeout):
                process.kill()
                process.wait()
                raise WorkerError(f"no answer within {self.timeout:.0f} s")
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise WorkerError(self._last_words())
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"the process ended ({lines[-1] if lines else f'exit code {self.process.poll()}'})"
