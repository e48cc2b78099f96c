"""What a user waits for before anything happens: imports, `--help`, and the first step of a training run."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.rows import Row, amount
from benchmarks.harness.session import Plan, Session

USED = "fivo.bounds, fivo.models, fivo.smc, fivo.training"
PATIENCE = 300


def imports(repetitions: int) -> list[Row]:
    """Seconds of `import fivo` beyond JAX, of everything a training script uses, and of `fivo --help`."""
    seconds = {"jax": [], "fivo": [], USED: [], "help": []}
    for _ in range(repetitions):
        jax, fivo, used = _import_seconds()
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fivo", "--help"], check=True, capture_output=True)
        for name, value in zip(seconds, (jax, fivo, used, time.perf_counter() - started), strict=True):
            seconds[name].append(value)
    best = {name: min(values) for name, values in seconds.items()}
    note = f"best of {repetitions}"
    kinds = (
        ("import fivo beyond jax", "fivo", 0.3),
        (f"import {USED} beyond jax", USED, None),
        ("fivo --help", "help", 0.5),
    )
    return [
        amount("start-up", what, "fivo", "import jax", best[name], best["jax"], "s", limit=limit, note=note)
        for what, name, limit in kinds
    ]


def _import_seconds() -> tuple[float, ...]:
    code = (
        "from time import perf_counter as now; a = now(); import jax; b = now(); import fivo; c = now(); "
        f"import {USED}; d = now(); print(b - a, c - b, d - b)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return tuple(float(value) for value in out.split())


def first_steps(repetitions: int) -> list[Row]:
    """Seconds from the command `fivo fit` to its first logged step, with an empty and with a filled cache."""
    with tempfile.TemporaryDirectory() as directory:
        first = _to_first_step(Path(directory), "first")
        later = min(_to_first_step(Path(directory), f"again-{i}") for i in range(repetitions))
    size, note = "fivo fit to its first step, bach, N 4, H 32", f"second start: best of {repetitions}"
    return [amount("start-up", size, "second start", "first start", later, first, "s", limit=5, note=note)]


def _to_first_step(directory: Path, name: str) -> float:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_COMPILATION_CACHE")}
    environment["XDG_CACHE_HOME"] = str(directory / "cache")
    run = directory / name
    metrics = run / "metrics.jsonl"
    command = [sys.executable, "-m", "fivo", "fit", "--out", str(run), "--log-every", "1"]
    started = time.perf_counter()
    with open(directory / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        while not (metrics.exists() and metrics.stat().st_size):
            if process.poll() is not None or time.perf_counter() - started > PATIENCE:
                words = (directory / f"{name}.log").read_text(errors="replace").strip().splitlines()
                raise RuntimeError(f"`fivo fit` made no step: {words[-1] if words else 'no message'}")
            time.sleep(0.005)
        return time.perf_counter() - started
    finally:
        process.kill()
        process.wait()


def first_call(session: Session) -> list[Row]:
    """Tracing and compiling the training step, nothing else running, against a plain JAX scan."""
    size = {"batch": 4, "particles": 4, "hidden": 32, "steps": 60, "bound": "fivo"}
    facts = {}
    for label, module in (("fivo", "ours.training"), ("plain JAX scan", "peers.plain_jax")):
        with tempfile.TemporaryDirectory() as directory:
            path = str(Path(directory) / "vrnn.npz")
            session.prepare(Plan("fivo", "benchmarks.ours.training:export", {"hidden": 32, "path": path}, own=True))
            given = size if label == "fivo" else {**size, "parameters": path}
            subject = session.prepare(Plan(label, f"benchmarks.{module}:compiled_step", given, own=True))
        if subject is None:
            return []
        facts[label] = subject.facts
    shape, sides = "batch 4, N 4, H 32, T 60", tuple(facts)
    return [
        amount(f"training step: seconds to {what}", shape, *sides, *(facts[side][what] for side in sides), "s")
        for what in ("trace", "compile")
    ]
