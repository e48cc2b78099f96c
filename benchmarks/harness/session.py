"""One run of the benchmarks: its workers, what it skips, and the taking of turns."""

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock
from typing import Any

from benchmarks.harness.rows import Timing
from benchmarks.harness.worker import Worker, WorkerError


@dataclass(frozen=True)
class Plan:
    """A task to prepare: `module:function` and its arguments, in our environment or in the peers'.

    Plans of one label are variants of each other: the fastest speaks for all.
    """

    label: str
    target: str
    arguments: dict[str, Any]
    own: bool = False
    variant: str = ""
    cpus: int | None = None

    def with_arguments(self, *, variant: str = "", **arguments: Any) -> "Plan":
        """A variant."""
        return replace(self, variant=variant, arguments={**self.arguments, **arguments})


@dataclass(frozen=True)
class Subject:
    """A prepared task of a worker."""

    plan: Plan
    worker: Worker
    task: str
    threads: str
    facts: dict[str, Any]


@dataclass
class Session:
    """Starts workers when they are first needed, remembers what was skipped and why."""

    quick: bool
    peers_python: str | None
    why_no_peers: str = ""
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    step_seconds: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Best times of FIVO's training step by size, for comparison with the machine's limit."""
    _workers: dict[str, Worker] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _lock: Lock = field(default_factory=Lock)

    def prepare_all(self, plans: Sequence[Plan]) -> list[Subject | None]:
        """Subjects of different processes are prepared at the same time, as compiling takes longer than measuring."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            return list(pool.map(self.prepare, plans))

    def prepare(self, plan: Plan) -> Subject | None:
        """A subject ready to be timed, or None with the reason noted. Tasks of one module share a process."""
        try:
            worker = self._worker(plan)
            task = f"{plan.label} {next(self._numbers)}"
            reply = worker.ask("prepare", name=task, target=plan.target, arguments=plan.arguments)
        except WorkerError as error:
            self.note_failure(plan, error)
            return None
        return Subject(plan, worker, task, reply["threads"], reply["facts"])

    def interleave(
        self, subjects: Sequence[Subject | None], *, rounds: int = 5, block: float = 0.3, budget: float = 20
    ) -> dict[str, Timing]:
        """Times by label: everyone in turn, `rounds` times, for about `block` seconds; slow ones stop at `budget`."""
        rounds = min(rounds, 2) if self.quick else rounds
        block = min(block, 0.05) if self.quick else block
        present = [subject for subject in subjects if subject is not None]
        turns = {subject.task: _Turns(subject, block, budget) for subject in present}
        for _ in range(rounds + 1):  # the first turn warms up
            for subject in present:
                try:
                    turns[subject.task].take()
                except WorkerError as error:
                    self.note_failure(subject.plan, error)
                    turns[subject.task].over = True
        best: dict[str, Timing] = {}
        for subject in present:
            label, timing = subject.plan.label, turns[subject.task].timing()
            self._drop(subject)
            if timing is not None and (label not in best or timing.best < best[label].best):
                best[label] = timing
        return best

    def values(self, subject: Subject | None, runs: int) -> list[list[float]]:
        """What `runs` runs of a subject give, untimed."""
        if subject is None:
            return []
        try:
            return subject.worker.ask("run", name=subject.task, first=0, calls=runs)["values"]
        except WorkerError as error:
            self.note_failure(subject.plan, error)
            return []
        finally:
            self._drop(subject)

    def note_failure(self, plan: Plan, reason: object) -> None:
        """A peer is skipped with a reason; a failure of what needs no other environment also fails the run."""
        details = ", ".join(f"{name} {value}" for name, value in plan.arguments.items() if name != "parameters")
        note = f"{plan.label} ({details}): {reason}"
        (self.failed if plan.own else self.skipped).append(note)
        print(f"  {'FAILED' if plan.own else 'skipped'}: {note}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def _drop(self, subject: Subject) -> None:
        if subject.worker.process.poll() is None:
            subject.worker.ask("drop", name=subject.task)

    def _worker(self, plan: Plan) -> Worker:
        python = sys.executable if plan.own else self.peers_python
        if python is None:
            raise WorkerError(self.why_no_peers)
        name = plan.target.split(":")[0] + ("" if plan.cpus is None else f"-{plan.cpus}")
        with self._lock:
            if name not in self._workers or self._workers[name].process.poll() is not None:
                self._workers[name] = Worker(name, python, own=plan.own, cpus=plan.cpus)
            return self._workers[name]


class _Turns:
    """One subject's turns: a warm-up, then blocks of as many runs as fill the block."""

    def __init__(self, subject: Subject, block: float, budget: float) -> None:
        self.subject, self.block, self.budget = subject, block, budget
        self.samples: list[float] = []
        self.values: list[list[float]] = []
        self.warm_up: float | None = None
        self.runs, self.calls, self.spent, self.over = 0, 1, 0.0, False

    def take(self) -> None:
        if self.over:
            return
        started = time.perf_counter()
        reply = self.subject.worker.ask("run", name=self.subject.task, first=self.runs, calls=self.calls)
        self.runs += self.calls
        self.values += reply["values"]
        per_call = reply["seconds"] / self.calls
        if self.warm_up is None:
            self.warm_up = per_call
        else:
            self.samples.append(per_call)
        self.calls = max(1, min(200, round(self.block / per_call)))
        self.spent += time.perf_counter() - started
        self.over = self.spent + per_call > self.budget

    def timing(self) -> Timing | None:
        # Of a run longer than half the budget the warm-up is all there is; compilation was not part of it.
        samples = self.samples or ([] if self.warm_up is None else [self.warm_up])
        if not samples:
            return None
        return Timing(samples, self.subject.threads, self.subject.plan.variant, self.values)
