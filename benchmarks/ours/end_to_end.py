"""Tasks of whole uses: a training run with its data, a split's score."""

import tempfile
from pathlib import Path
from typing import Any

import jax

from benchmarks.harness.task import Task, all_threads
from fivo.bounds import FIVO
from fivo.data import load
from fivo.training import TrainConfig, Trainer, make_config, train
from fivo.training.build import build_model, training_bound
from fivo.training.scoring import device_batch, score, scoring_plan
from fivo.training.session import micro_batches

# The tasks below compile the same programs.
_cache = tempfile.TemporaryDirectory()
jax.config.update("jax_compilation_cache_dir", _cache.name)


def whole_training(epochs: int) -> Task:
    """Each run trains on bach from start to end; gives the seconds per step of every epoch but the first."""
    data = load("bach")
    epoch = micro_batches(_config(1, 1), data).batches_per_epoch
    config = _config(epoch * epochs, epoch)

    def call(index: int) -> list[float]:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as directory:
            train(config, Path(directory) / "run", data, report=rows.append)
        return [1 / row["steps_per_second"] for row in rows[1:]]

    return Task(call, all_threads())


def steps_alone() -> Task:
    """Each run is one epoch's steps on batches that are on the device already; the facts say how many."""
    data, config = load("bach"), _config(1, 1)
    trainer = Trainer(build_model(config, data, key=jax.random.key(0)), training_bound(config), config.learning_rate)
    state, batches = trainer.start(), micro_batches(config, data)
    loaded = [device_batch(data.splits["train"], *batches[step]) for step in range(batches.batches_per_epoch)]

    def call(index: int) -> jax.Array:
        nonlocal state
        for step, batch in enumerate(loaded):
            state, metrics = trainer(state, [batch], jax.random.fold_in(jax.random.key(index), step))
        return metrics.bound.block_until_ready()

    call(0)  # compiles
    frames = sum(int(batch.lengths.sum()) for batch in loaded)
    return Task(call, all_threads(), {"steps": len(loaded), "frames": frames})


def split_score(particles: int) -> Task:
    """Each run scores bach's test split with FIVO."""
    data = load("bach")
    model = build_model(_config(1, 1), data, key=jax.random.key(0))
    plan = scoring_plan(data.lengths("test"), particles)

    def call(index: int) -> float:
        key = jax.random.key(index)
        return float(score(model, FIVO(particles), data.splits["test"], plan, key=key).sum())

    call(0)  # compiles
    return Task(call, all_threads(), {"frames": int(data.lengths("test").sum())})


def _config(steps: int, log_every: int) -> TrainConfig:
    settings = {"dataset": "bach", "steps": steps, "log_every": log_every, "validate_every": steps, "patience": 0}
    return make_config(settings)
