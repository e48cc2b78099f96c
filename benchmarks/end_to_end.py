"""Whole uses: evaluation at N = 128, training with its data, start-up, and memory at the longest sequence."""

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import startup
from benchmarks.harness.rows import Row, amount, faster
from benchmarks.harness.session import Plan, Session
from benchmarks.harness.worker import Worker, WorkerError
from benchmarks.problems import Size
from benchmarks.training_step import PLAIN, TORCH

EVALUATIONS = (Size(4, 128, 32, 60), Size(4, 128, 64, 250))
LONGEST = Size(4, 16, 64, 4273)
NEEDED_MEGABYTES = 10_000
"""What the peers may take at the longest sequence, and then some: with less memory free they are skipped."""


def run(session: Session) -> list[Row]:
    """All of them."""
    repetitions = 2 if session.quick else 5
    rows = startup.imports(repetitions) + startup.first_steps(1 if session.quick else 3)
    rows += startup.first_call(session)
    with tempfile.TemporaryDirectory() as directory:
        for size in (Size(2, 8, 16, 10),) if session.quick else EVALUATIONS:
            rows += evaluation(session, size, directory)
        rows += memory(session, Size(2, 4, 16, 50) if session.quick else LONGEST, directory)
    rows += split(session)
    rows += throughput(session)
    return rows


def evaluation(session: Session, size: Size, directory: str) -> list[Row]:
    """The bound alone against the peers'."""
    work = size._asdict()
    given = {**work, "parameters": parameters(session, size.hidden, directory)}
    torch = Plan(TORCH, "benchmarks.peers.torch_vrnn:evaluation", given)
    plans = [
        Plan("fivo", "benchmarks.ours.training:evaluation", work, own=True),
        *(torch.with_arguments(threads=threads) for threads in (1, 2)),
        Plan(PLAIN, "benchmarks.peers.plain_jax:evaluation", given, own=True),
    ]
    times = session.interleave(session.prepare_all(plans), rounds=5)
    per_step = {"scale": 1e6 / size.steps, "unit": "µs per timestep"}
    return [
        faster("evaluation, FIVO", str(size), peer, times["fivo"], times[peer], **per_step)
        for peer in (TORCH, PLAIN)
        if peer in times and "fivo" in times
    ]


def parameters(session: Session, hidden: int, directory: str) -> str:
    """Where the peers find a model's parameters."""
    path = str(Path(directory) / f"vrnn-{hidden}.npz")
    session.prepare(Plan("fivo", "benchmarks.ours.training:export", {"hidden": hidden, "path": path}, own=True))
    return path


def split(session: Session) -> list[Row]:
    """A whole test split at N = 128 and, for comparison, at N = 4."""
    target = "benchmarks.ours.end_to_end:split_score"
    plans = [Plan(f"N {n}", target, {"particles": n}, own=True) for n in (128, 4)]
    subjects = session.prepare_all(plans)
    times = session.interleave(subjects, rounds=3)
    if len(times) < 2 or subjects[0] is None:
        return []
    seconds, small = times["N 128"].best, times["N 4"].best
    note = f"{subjects[0].facts['frames'] / seconds:,.0f} frames per second at N 128"
    work, size, sides = "evaluation of a split", "bach, test, H 32", ("fivo, N 128", "fivo, N 4")
    return [amount(work, size, *sides, seconds, small, "s", threads=times["N 128"].threads, note=note)]


def throughput(session: Session) -> list[Row]:
    """`fit` on bach, with loading, logging and checkpoints, against the same steps on batches already loaded."""
    arguments = {"epochs": 2 if session.quick else 5}
    whole = session.prepare(Plan("fivo fit", "benchmarks.ours.end_to_end:whole_training", arguments, own=True))
    runs = session.values(whole, 1)
    bare = session.prepare(Plan("steps", "benchmarks.ours.end_to_end:steps_alone", {}, own=True))
    alone = session.interleave([bare], rounds=4).get("steps")
    if not runs or bare is None or alone is None:
        return []
    seconds, steps = statistics.median(runs[0]), bare.facts["steps"]
    note = f"{bare.facts['frames'] / steps / seconds:,.0f} frames per second"
    work, size, sides = "training with its data", "bach, batch 4, N 4, H 32", ("fivo fit", "its steps alone")
    both = (seconds * 1e3, alone.median / steps * 1e3)
    return [amount(work, size, *sides, *both, "ms per step", threads=alone.threads, note=note)]


def memory(session: Session, size: Size, directory: str) -> list[Row]:
    """The most memory that a process has while it compiles and does one training step, beyond what it had before."""
    given = {**size._asdict(), "bound": "fivo"}
    with_parameters = {**given, "parameters": parameters(session, size.hidden, directory)}
    plans = [
        Plan("fivo", "benchmarks.ours.training:step", given, own=True),
        Plan(PLAIN, "benchmarks.peers.plain_jax:step", with_parameters, own=True),
        Plan(TORCH, "benchmarks.peers.torch_vrnn:step", {**with_parameters, "threads": 2}),
    ]
    found = {}
    for plan in plans:
        try:
            if plan.label != "fivo" and free_megabytes() < NEEDED_MEGABYTES:
                raise WorkerError(f"less than {NEEDED_MEGABYTES:,} MB are free")
            found[plan.label] = peak(session, plan)
        except WorkerError as error:
            session.note_failure(plan, error)
    return [
        amount("peak memory of a training step", str(size), "fivo", peer, found["fivo"], found[peer], "MB")
        for peer in (PLAIN, TORCH)
        if peer in found and "fivo" in found
    ]


def peak(session: Session, plan: Plan) -> float:
    """Megabytes, in a process of its own."""
    python = sys.executable if plan.own else session.peers_python
    if python is None:
        raise WorkerError(session.why_no_peers)
    worker = Worker(f"peak-{plan.label}", python, own=plan.own)
    try:
        small = {**plan.arguments, "batch": 1, "particles": 2, "steps": 2}  # loads the library and its compiler
        worker.ask("prepare", name="small", target=plan.target, arguments=small)
        worker.ask("run", name="small", first=0, calls=1)
        before = worker.ask("memory")["peak"]
        worker.ask("prepare", name="step", target=plan.target, arguments=plan.arguments)
        worker.ask("run", name="step", first=0, calls=1)
        return worker.ask("memory")["peak"] - before
    finally:
        worker.close()


def free_megabytes() -> float:
    """What Linux says a new process can have."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) / 1e3
