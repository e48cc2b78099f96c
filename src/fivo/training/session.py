"""A run in memory: its state, how it moves on, and how it is kept on disk."""

import math
from typing import NamedTuple

import jax

from fivo import serialization
from fivo.batch import Batch
from fivo.data import Batches, Dataset
from fivo.errors import InputError
from fivo.training.build import build_model, training_bound, validation_bound, validation_particles
from fivo.training.config import TrainConfig
from fivo.training.run_directory import RunDirectory
from fivo.training.scoring import device_batch, nats_per_step, score, scoring_plan
from fivo.training.step import Metrics, Trainer
from fivo.training.window import Window

PASSES = 20
"""Validations that a run is expected to have, when shapes are chosen for them."""
MAX_WASTE = 0.15


class Progress(NamedTuple):
    """Where a run stands: everything but the arrays that its future depends on, and what it has cost."""

    step: int = 0
    best_step: int = 0
    best_validation: float | None = None
    seconds: float = 0.0
    compilations: int = 0
    unlogged: tuple[tuple[float, ...], ...] = ()
    """Metrics of the steps since the last line, where a run was paused between two lines."""


class Session:
    """A pure function of settings and step: the batches and keys of a step depend on nothing that came before."""

    def __init__(self, config: TrainConfig, run: RunDirectory, dataset: Dataset) -> None:
        self.config, self.run, self.dataset = config, run, dataset
        model_key, self.key, self.validation_key = jax.random.split(jax.random.key(config.seed), 3)
        model = build_model(config, dataset, key=model_key)
        self.trainer = Trainer(model, training_bound(config), config.learning_rate, weight_decay=config.weight_decay)
        self.state = self.trainer.start()
        self.progress = Progress()
        self.saved_step = 0
        self.batches = micro_batches(config, dataset)
        self.validation_plan = scoring_plan(dataset.lengths("valid"), validation_particles(config), passes=PASSES)

    def advance(self) -> Metrics:
        """One optimiser step."""
        step = self.progress.step
        known = self.trainer.compilations
        self.state, metrics = self.trainer(self.state, self.step_batches(step), jax.random.fold_in(self.key, step))
        compilations = self.progress.compilations + self.trainer.compilations - known
        self.progress = self.progress._replace(step=step + 1, compilations=compilations)
        return metrics

    def step_batches(self, step: int) -> list[Batch]:
        """The micro-batches of a step."""
        per_step = self.config.sequences_per_step // self.batches.batch_size
        chosen = (self.batches[step * per_step + i] for i in range(per_step))
        return [device_batch(self.dataset.splits["train"], indices, length) for indices, length in chosen]

    def validate(self) -> float:
        """The run's own bound on the validation split, noted if it is the best so far."""
        values = score(
            self.trainer.model(self.state),
            validation_bound(self.config),
            self.dataset.splits["valid"],
            self.validation_plan,
            key=self.validation_key,
        )
        value = nats_per_step(values, self.dataset.lengths("valid"))
        if not math.isfinite(value):
            raise self.failure("validation bound", self.progress.step)
        if self.progress.best_validation is None or value > self.progress.best_validation:
            self.progress = self.progress._replace(best_step=self.progress.step, best_validation=value)
        return value

    @property
    def finished(self) -> bool:
        """Whether all steps are done, or too many validations brought no improvement."""
        waited = self.progress.step - self.progress.best_step
        out_of_patience = 0 < self.config.patience * self.config.validate_every <= waited
        return self.progress.step >= self.config.steps or out_of_patience

    def save(self) -> None:
        """A checkpoint to continue from to the bit; when it is the best one, it is kept as that too."""
        serialization.save(self.run.latest, self.state, self.progress._asdict())
        self.saved_step = self.progress.step
        self._keep_best()

    def pause(self, window: Window, seconds: float) -> None:
        """A checkpoint of any step, also between two lines of metrics; none of a state that is not finite."""
        bad = window.first_bad(self.progress.step)
        if bad is not None:
            raise self.failure(*bad)
        if self.progress.step > self.saved_step:
            self.progress = self.progress._replace(seconds=seconds, unlogged=window.unlogged())
            self.save()

    def restore(self) -> None:
        """Go on from the latest checkpoint, if there is one."""
        if not self.run.latest.exists():
            return
        self.progress = read_progress(self.run)
        if self.progress.step > self.config.steps:
            raise InputError(
                f"{str(self.run.path)!r} has trained {self.progress.step} steps where {self.config.steps} were asked "
                "for; ask for at least as many, or choose another --out."
            )
        self.state = serialization.load(self.run.latest, self.state)
        self.saved_step = self.progress.step

    def settle(self) -> None:
        """Make the other files agree with the checkpoint: forget what came after it, keep what was not kept yet."""
        self.run.forget_after(self.progress.step)
        self._keep_best()

    def failure(self, what: str, step: int) -> InputError:
        """The sentence for a run that cannot go on."""
        return InputError(
            f"the {what} became NaN or infinite at step {step}; the run is kept as it was at step {self.saved_step}: "
            f"go on with another setting, say --learning-rate {self.config.learning_rate / 3:.1e} --override."
        )

    def _keep_best(self) -> None:
        # After `latest`: killed between the two, the next start does this again. The other way around, a best
        # checkpoint could be of a future that is then trained differently.
        if 0 < self.progress.best_step == self.progress.step:
            metadata = {"step": self.progress.best_step, "validation": self.progress.best_validation}
            serialization.save(self.run.best, self.state.parameters, metadata)


def read_progress(run: RunDirectory) -> Progress:
    """Where the latest checkpoint stands."""
    metadata = serialization.read_metadata(run.latest)
    unlogged = tuple(tuple(row) for row in metadata.pop("unlogged", ()))
    if metadata.keys() | {"unlogged"} != Progress()._asdict().keys():
        raise InputError(f"{str(run.latest)!r} is not a checkpoint of a run; remove it to train from the beginning.")
    return Progress(**metadata, unlogged=unlogged)


def micro_batches(config: TrainConfig, dataset: Dataset) -> Batches:
    """Batches of similar lengths: as large as the step's sequences allow without padding more than 15 %."""
    lengths = dataset.lengths("train")
    for size in range(min(config.sequences_per_step, len(lengths)), config.batch_size, -1):
        if config.sequences_per_step % size == 0:
            candidate = Batches(lengths, size, config.seed)
            if candidate.waste(epochs=4) < MAX_WASTE:
                return candidate
    return Batches(lengths, config.batch_size, config.seed)
