"""How the filter's time grows with particles and steps, and whether a million particles fit into 2 GB."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from benchmarks.harness.rows import Row, amount, part
from benchmarks.harness.session import Plan, Session

ROOT = Path(__file__).resolve().parents[1]
NUM_PARTICLES = tuple(1_000 * 2**k for k in range(11))
NUM_STEPS = tuple(100 * 2**k for k in range(8))
QUICK = (1_000, 2_000), (100, 200)
MILLION = (1_000_000, 100)
MAX_GROWTH = 2.2
MAX_GIGABYTES = 2


def run(session: Session) -> list[Row]:
    """Each doubling measured in turns with the size it doubles, so that a busy machine slows both."""
    particles, steps = QUICK if session.quick else (NUM_PARTICLES, NUM_STEPS)
    rows = [row for pair in pairwise(particles) for row in doubling(session, "N", pair, [(n, 100) for n in pair])]
    rows += [row for pair in pairwise(steps) for row in doubling(session, "T", pair, [(1_000, t) for t in pair])]
    return rows + memory(session, *((10_000, 100) if session.quick else MILLION))


def doubling(session: Session, axis: str, values: tuple[int, int], sizes: list[tuple[int, int]]) -> list[Row]:
    """The time of the larger as a multiple of the smaller's."""
    labels = [f"fivo, {axis} {value}" for value in values]
    plans = [
        Plan(label, "benchmarks.ours.filtering:evidence", _work(*size), own=True)
        for label, size in zip(labels, sizes, strict=True)
    ]
    times = session.interleave([session.prepare(plan) for plan in plans], rounds=10, block=0.5, budget=60)
    if len(times) < len(plans):
        return []
    small, large = (times[label] for label in labels)
    work, size = f"time, doubling {axis} of the filter", "N {}, T {}".format(*sizes[1])
    sides = reversed(labels)
    return [
        part(work, size, *sides, large.best * 1e3, small.best * 1e3, "ms", at_most=MAX_GROWTH, threads=large.threads)
    ]


def memory(session: Session, particles: int, steps: int) -> list[Row]:
    """The peak of a process of its own, interpreter and compiler included."""
    plan = Plan("fivo", "benchmarks.ours.million", {"particles": particles, "steps": steps}, own=True)
    command = [sys.executable, "-m", plan.target, str(particles), str(steps)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        session.note_failure(plan, ran.stderr.strip().splitlines()[-1])
        return []
    found = json.loads(ran.stdout)
    work, size = "peak memory of the filter", f"N {particles}, T {steps}"
    note = f"one run takes {found['seconds']:.1f} s"
    gigabytes = found["peak_bytes"] / 1e9
    return [
        amount(work, size, "fivo", "limit", gigabytes, MAX_GIGABYTES, "GB", limit=MAX_GIGABYTES, note=note),
    ]


def _work(particles: int, steps: int) -> dict[str, object]:
    return {"model": "linear-Gaussian", "particles": particles, "steps": steps, "scheme": "systematic"}
