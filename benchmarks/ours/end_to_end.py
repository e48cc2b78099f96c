"""Tasks of whole uses: a training run with its data, a split's score."""

import tempfile
from pathlib import Path
from typing import Any

import jax

from benchmarks.harness.task import Task, all_threads
from fivo._run import prepare
from fivo._scoring import device_batch, score, scoring_plan
from fivo.bounds import FIVO
from fivo.training import Plan, Trainer, Watchers, train
from fivo.training.session import micro_batches

# The tasks below compile the same programs.
_cache = tempfile.TemporaryDirectory()
jax.config.update("jax_compilation_cache_dir", _cache.name)


def whole_training(epochs: int) -> Task:
    """Each run trains on bach from start to end; gives the seconds per step of every epoch but the first."""
    short = _plan(1, 1)
    epoch = micro_batches(short.settings, short.dataset).batches_per_epoch
    plan = _plan(epoch * epochs, epoch)

    def call(index: int) -> list[float]:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as directory:
            train(plan, Path(directory) / "run", watchers=Watchers(report=rows.append))
        return [1 / row["steps_per_second"] for row in rows[1:]]

    return Task(call, all_threads())


def steps_alone() -> Task:
    """Each run is one epoch's steps on batches that are on the device already; the facts say how many."""
    plan = _plan(1, 1)
    trainer = Trainer(plan.model, plan.bound, plan.optimizer)
    state, batches = trainer.start(), micro_batches(plan.settings, plan.dataset)
    loaded = [device_batch(plan.dataset.splits["train"], *batches[step]) for step in range(batches.batches_per_epoch)]

    def call(index: int) -> jax.Array:
        nonlocal state
        for step, batch in enumerate(loaded):
            state, metrics = trainer(state, [batch], jax.random.fold_in(jax.random.key(index), step), step)
        return metrics["bound"].block_until_ready()

    call(0)  # compiles
    frames = sum(int(batch.lengths.sum()) for batch in loaded)
    return Task(call, all_threads(), {"steps": len(loaded), "frames": frames})


def split_score(particles: int) -> Task:
    """Each run scores bach's test split with FIVO."""
    run = _plan(1, 1)
    data, model = run.dataset, run.model
    plan = scoring_plan(data.lengths("test"), particles)

    def call(index: int) -> float:
        key = jax.random.key(index)
        return float(score(model, FIVO(particles), data.splits["test"], plan, key=key).sum())

    call(0)  # compiles
    return Task(call, all_threads(), {"frames": int(data.lengths("test").sum())})


def _plan(steps: int, log_every: int) -> Plan:
    settings = {"steps": steps, "log_every": log_every, "validate_every": steps, "patience": 0}
    return prepare("vrnn", "bach", settings=settings)
