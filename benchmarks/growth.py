"""How the training step's time and memory grow when particles, steps, units or sequences double."""

from itertools import pairwise
from typing import NamedTuple

from benchmarks.harness.rows import Row, part
from benchmarks.harness.session import Plan, Session
from benchmarks.problems import Size

BASE = Size(4, 4, 64, 250)
CHAINS = {
    "particles": (4, 8, 16, 32, 64),
    "steps": (250, 500, 1000, 2000, 4000),
    "hidden": (32, 64, 128),
    "batch": (4, 8, 16),
}
QUICK = {"particles": (4, 8)}
LIMITS = {"particles": 2.2, "steps": 2.2}
"""Layers have the square of their units as weights, so H has no such limit; a batch's has not been asked for."""


class Cost(NamedTuple):
    """Of one training step."""

    seconds: float
    megabytes: float
    threads: str


def run(session: Session) -> list[Row]:
    """One row of time and one of memory per doubling."""
    rows: list[Row] = []
    known: dict[Size, Cost] = {}
    for name, chain in (QUICK if session.quick else CHAINS).items():
        base = Size(2, 4, 16, 20) if session.quick else BASE
        sizes = [base._replace(**{name: value}) for value in chain]
        for size in sizes:
            if size not in known:
                cost = measure(session, size)
                if cost is not None:
                    known[size] = cost
        for small, large in pairwise(sizes):
            if small in known and large in known:
                rows += doubling(name, small, large, known[small], known[large], LIMITS.get(name))
    return rows


def measure(session: Session, size: Size) -> Cost | None:
    """Best time, and the megabytes that the compiled step works in."""
    plan = Plan("fivo", "benchmarks.ours.training:compiled_step", {**size._asdict(), "bound": "fivo"}, own=True)
    subject = session.prepare(plan)
    timing = session.interleave([subject], rounds=4, block=0.3, budget=15).get("fivo")
    if subject is None or timing is None:
        return None
    return Cost(timing.best, subject.facts["bytes"] / 1e6, timing.threads)


def doubling(name: str, small: Size, large: Size, before: Cost, after: Cost, limit: float | None) -> list[Row]:
    """Growth of time and of memory."""
    axis = {"particles": "N", "steps": "T", "hidden": "H", "batch": "batch"}[name]
    work, size = f"doubling {axis} of a training step", str(large)
    sides = (f"fivo, {axis} {getattr(large, name)}", f"fivo, {axis} {getattr(small, name)}")
    both = {"at_most": limit, "threads": after.threads}
    return [
        part(f"time, {work}", size, *sides, after.seconds * 1e3, before.seconds * 1e3, "ms", **both),
        part(f"memory, {work}", size, *sides, after.megabytes, before.megabytes, "MB", **both),
    ]
