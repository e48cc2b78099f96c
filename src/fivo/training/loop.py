"""The training loop: steps, logging, validation, early stopping, checkpoints."""

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from fivo import serialization
from fivo.batch import Batch
from fivo.data import Batches, Dataset
from fivo.errors import InputError
from fivo.training.build import build_model, training_bound, validation_bound
from fivo.training.config import TrainConfig
from fivo.training.events import EventWriter
from fivo.training.run_directory import RunDirectory
from fivo.training.scoring import device_batch, nats_per_step, score
from fivo.training.step import Metrics, Trainer

CHECKPOINT_SECONDS = 30.0

Report = Callable[[dict[str, Any]], None]


class Progress(NamedTuple):
    """Where a run stands: everything but the parameters that its future depends on."""

    step: int = 0
    best_step: int = 0
    best_validation: float = -np.inf
    seconds: float = 0.0


def train(
    config: TrainConfig,
    directory: str | os.PathLike,
    dataset: Dataset,
    *,
    override: bool = False,
    report: Report = lambda row: None,
) -> dict[str, Any]:
    """Train a run to its end, or continue it; returns what `result.json` holds.

    A run is a pure function of its settings and the step: killed at any instant and started again, it ends in the
    same bits.
    """
    with RunDirectory(directory) as run:
        run.open(config, dataset.fingerprint, override=override)
        return _Loop(config, run, dataset, report).run_to_end()


class _Loop:
    def __init__(self, config: TrainConfig, run: RunDirectory, dataset: Dataset, report: Report) -> None:
        self.config, self.run, self.dataset, self.report = config, run, dataset, report
        model_key, self.key, self.validation_key = jax.random.split(jax.random.key(config.seed), 3)
        model = build_model(config, dataset, key=model_key)
        self.trainer = Trainer(model, training_bound(config), config.learning_rate)
        self.parameters = self.trainer.parameters(model)
        self.optimiser_state = self.trainer.optimiser.init(self.parameters)
        self.progress = Progress()
        self.batches = micro_batches(config, dataset)

    def run_to_end(self) -> dict[str, Any]:
        self.restore()
        events = EventWriter(self.run.path) if self.config.tensorboard else None
        started, window, saved = time.monotonic() - self.progress.seconds, [], time.monotonic()
        window_started = time.monotonic()
        while self.progress.step < self.config.steps and not self.out_of_patience():
            step = self.progress.step
            self.parameters, self.optimiser_state, metrics = self.trainer(
                self.parameters, self.optimiser_state, self.step_batches(step), jax.random.fold_in(self.key, step)
            )
            window.append(metrics)
            step += 1
            self.progress = self.progress._replace(step=step)
            validate = step % self.config.validate_every == 0 or step == self.config.steps
            if not validate and step % self.config.log_every != 0:
                continue
            row = self.average(window, step)
            row["steps_per_second"] = len(window) / (time.monotonic() - window_started)
            if validate:
                row["validation"] = self.validate(step)
            self.progress = self.progress._replace(seconds=time.monotonic() - started)
            row["seconds"] = self.progress.seconds
            self.run.append_metrics(row)
            if events is not None:
                events.write(row)
            self.report(row)
            if validate or time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.save()
                saved = time.monotonic()
            window, window_started = [], time.monotonic()
        return self.finish()

    def step_batches(self, step: int) -> list[Batch]:
        """The micro-batches of a step."""
        per_step = self.config.sequences_per_step // self.batches.batch_size
        chosen = (self.batches[step * per_step + i] for i in range(per_step))
        return [device_batch(self.dataset.splits["train"], indices, length) for indices, length in chosen]

    def average(self, window: list[Metrics], step: int) -> dict[str, Any]:
        """The window's metrics; a loss that is not finite ends the run here, before anything of it is kept."""
        values = np.asarray(jax.device_get(window), np.float64)
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            first = step - len(window) + int(np.argmax(bad)) + 1
            names = [
                name for name, v in zip(Metrics._fields, values[np.argmax(bad)], strict=True) if not np.isfinite(v)
            ]
            raise InputError(
                f"the {' and '.join(names).replace('_', ' ')} became NaN or infinite at step {first}; the last good checkpoint is "
                f"kept, continue it with another setting, say --learning-rate {self.config.learning_rate / 3:.0e} --override."
            )
        return {"step": step, **dict(zip(Metrics._fields, values.mean(axis=0).tolist(), strict=True))}

    def validate(self, step: int) -> float:
        """The run's own bound on the validation split; keeps the parameters if they are the best so far."""
        model = self.trainer.model(self.parameters)
        values = score(model, validation_bound(self.config), self.dataset, "valid", key=self.validation_key)
        value = nats_per_step(values, self.dataset, "valid")
        if value > self.progress.best_validation:
            self.progress = self.progress._replace(best_step=step, best_validation=value)
            serialization.save(self.run.best, self.parameters, {"step": step, "validation": value})
        return value

    def out_of_patience(self) -> bool:
        waited = self.progress.step - self.progress.best_step
        return 0 < self.config.patience * self.config.validate_every <= waited

    def save(self) -> None:
        """A checkpoint from which the run continues to the bit."""
        serialization.save(self.run.latest, (self.parameters, self.optimiser_state), self.progress._asdict())

    def restore(self) -> None:
        """Continue from the latest checkpoint, if there is one; what came after it is forgotten."""
        if self.run.latest.exists():
            like = (self.parameters, self.optimiser_state)
            self.parameters, self.optimiser_state = serialization.load(self.run.latest, like)
            self.progress = Progress(**serialization.read_metadata(self.run.latest))
        self.run.forget_after(self.progress.step)

    def finish(self) -> dict[str, Any]:
        result = {
            "steps": self.progress.step,
            "best_step": self.progress.best_step,
            "best_validation": self.progress.best_validation,
            "stopped_early": self.progress.step < self.config.steps,
            "seconds": self.progress.seconds,
            "compilations": self.trainer.compilations,
        }
        self.run.write_json("result.json", result)
        return result


def micro_batches(config: TrainConfig, dataset: Dataset) -> Batches:
    """Batches of similar lengths: as large as the step's sequences allow without padding more than 15 %."""
    lengths = dataset.lengths("train")
    size = config.sequences_per_step
    while size > config.batch_size:
        candidate = Batches(lengths, size, config.seed)
        if size <= len(lengths) and candidate.waste(epochs=4) < 0.15:
            return candidate
        size = next(s for s in range(size - 1, 0, -1) if config.sequences_per_step % s == 0)
    return Batches(lengths, config.batch_size, config.seed)
