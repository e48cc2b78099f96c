"""A run in memory: its state, how it moves on, and how it is kept on disk."""

import logging
import math
from collections.abc import Callable
from typing import Any

import jax
import msgspec
import numpy as np
from jax.sharding import Mesh

from fivo import serialization
from fivo._scoring import device_batch, nats_per_step, score, scoring_plan, weights_dtype
from fivo.batch import Batch
from fivo.data import Batches, Dataset
from fivo.devices.mesh import check_divides, replicated
from fivo.devices.processes import decided, from_leader, several
from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.runs import Best, Progress
from fivo.settings import Adam, Settings
from fivo.training.groups import MAIN
from fivo.training.plan import Plan, run_keys, validation_particles
from fivo.training.run_directory import RunDirectory
from fivo.training.step import Metrics, Trainer
from fivo.training.window import Window

PASSES = 20
"""Validations that a run is expected to have, when shapes are chosen for them."""
MAX_WASTE = 0.15

logger = logging.getLogger(__name__)


class Session:
    """A pure function of plan and step: the batches and keys of a step depend on nothing that came before."""

    def __init__(
        self,
        plan: Plan,
        run: RunDirectory,
        compiling: Callable[[str], None] = lambda what: None,
        mesh: Mesh | None = None,
    ) -> None:
        self.plan, self.run, self.compiling, self.mesh = plan, run, compiling, mesh
        self.config, self.dataset = plan.settings.training, plan.dataset
        _, self.key, self.validation_key = run_keys(plan.settings)
        self.trainer = Trainer(
            plan.model,
            plan.bound,
            plan.optimizer,
            average=self.config.average,
            updates=plan.updates,
            compiling=lambda: compiling("a training step"),
            mesh=mesh,
        )
        self.state = self.trainer.start()
        self.progress = Progress()
        self.saved_step = 0
        self.last_step: int | None = None
        """Where a callback ended the run that this one repeats."""
        self.batches = micro_batches(plan.settings, plan.dataset)
        check_divides(mesh, self.batches.batch_size, "batch_size")
        self.dtype = weights_dtype(plan.model)
        particles = validation_particles(plan.settings)
        self.validation_plan = scoring_plan(plan.dataset.lengths("valid"), particles, passes=PASSES, mesh=mesh)

    def advance(self) -> Metrics:
        """One optimizer step."""
        step = self.progress.step
        known = self.trainer.compilations
        key = jax.random.fold_in(self.key, step)
        self.state, metrics = self.trainer(self.state, self.step_batches(step), key, step)
        compilations = self.progress.compilations + self.trainer.compilations - known
        self.note(step=step + 1, compilations=compilations)
        return metrics

    def step_batches(self, step: int) -> list[Batch]:
        """The micro-batches of a step."""
        per_step = self.plan.settings.sequences_per_step // self.batches.batch_size
        chosen = (self.batches[step * per_step + i] for i in range(per_step))
        split = self.dataset.splits["train"]
        return [device_batch(split, indices, length, self.dtype, self.mesh) for indices, length in chosen]

    def validate(self) -> float:
        """The run's own bound on the validation split, noted if it is the best so far."""
        if self.progress.best_validation is None:
            self.compiling("validation")
        validation = self.plan.validation
        if validation is self.plan.bound:
            validation = self.trainer.trained_bound(self.state)
        values = score(
            self.trainer.model(self.state),
            validation,
            self.dataset.splits["valid"],
            self.validation_plan,
            key=self.validation_key,
            mesh=self.mesh,
        )
        value = nats_per_step(values, self.dataset.scored_lengths("valid"))
        if not math.isfinite(value):
            raise self.failure("validation bound", self.progress.step)
        if self.progress.best_validation is None or value > self.progress.best_validation:
            self.note(best_step=self.progress.step, best_validation=value)
        return value

    def note(self, **changes: Any) -> None:
        """Bring the progress up to date."""
        self.progress = msgspec.structs.replace(self.progress, **changes)

    @property
    def finished(self) -> bool:
        """Whether all steps are done, too many validations brought no improvement, or a callback ended the run."""
        waited = self.progress.step - self.progress.best_step
        out_of_patience = 0 < self.config.patience * self.config.validate_every <= waited
        ended = self.config.steps <= self.progress.ended
        return self.progress.step >= self.config.steps or out_of_patience or ended

    def save(self) -> None:
        """A checkpoint from which training resumes to the same bits; if it is the best one, it is also kept as such."""
        self.run.write_latest(serialization.to_arrays(self.state), self.progress)
        self.saved_step = self.progress.step
        # After `latest`: killed between the two, the next start does this again. The other way around, a best
        # checkpoint could be of a future that is then trained differently.
        self._keep_best()

    def pause(self, window: Window, seconds: float) -> None:
        """A checkpoint of any step, also between two lines of metrics; none of a state that is not finite."""
        bad = window.first_bad(self.progress.step)
        if bad is not None:
            raise self.failure(*bad)
        if self.progress.step > self.saved_step:
            self.note(seconds=seconds, unlogged=window.unlogged())
            self.save()

    def restore(self) -> None:
        """Go on from the latest good checkpoint, if there is one; all processes from that of process 0."""
        decided(self._read)
        if several():
            mine = serialization.to_arrays(self.state)
            told = from_leader(lambda: b"".join(array.tobytes() for array in mine.values()))
            self.state = replicated(self.mesh, serialization.from_arrays(_like(mine, told), self.state, self.run.path))
            progress = from_leader(lambda: msgspec.json.encode(self.progress))
            self.progress = msgspec.json.decode(progress, type=Progress)
            self.saved_step = self.progress.step

    def _read(self) -> None:
        found = self.run.read_latest()
        if found is None:
            return
        if found.progress.step > self.config.steps:
            raise InputError(
                f"{str(self.run.path)!r} has trained {found.progress.step} steps where {self.config.steps} were asked "
                "for; ask for at least as many, or choose another --out."
            )
        self.state = replicated(self.mesh, serialization.from_arrays(found.arrays, self.state, found.path))
        self.progress = found.progress
        self.saved_step = self.progress.step

    def settle(self) -> None:
        """Make the other files agree with the checkpoint: forget what came after it, keep what was not kept yet."""
        self.run.forget_after(self.progress.logged_step)
        if not self.best_is_kept():
            self._keep_best()

    def best_is_kept(self) -> bool:
        """Whether the best checkpoint exists and is intact; that of another run is refused."""
        best = self.progress.best

        def kept() -> bool:
            try:
                return self.run.best.exists() and self.run.read_best()[1] == best
            except DamagedError:
                return False

        return best is None or decided(kept)

    def conclude(self) -> Best:
        """The best step of a run that has ended."""
        best = self.progress.best
        if best is None:
            # No more steps were asked for than a checkpoint had that was written before the first validation.
            best = Best(self.progress.step, self.validate())
            self.save()
        return best

    def again(self) -> "Session":
        """The run from its beginning, which ends in the same bits; refused where its settings were changed on the way.

        The old checkpoints stay until new ones take their place: killed before that, the next start comes here again.
        """
        where = f"{str(self.run.best)!r}, of step {self.progress.best_step},"

        def check() -> None:
            changed_at = self.run.identity().changed_at
            if changed_at:
                raise InputError(
                    f"{where} is lost or damaged and cannot be trained again, as settings were changed with --override "
                    f"at step {changed_at[0]}; restore it from a copy, or train in another --out."
                )

        decided(check)
        logger.warning("%s is lost or damaged; the run is trained again from the beginning, to the same bits.", where)
        session = Session(self.plan, self.run, self.compiling, self.mesh)
        session.last_step = self.progress.step if self.progress.ended else None
        return session

    def failure(self, what: str, step: int) -> InputError:
        """The error message for a run that cannot continue."""
        return InputError(
            f"the {what} became NaN or infinite at step {step}; the run is kept as it was at step {self.saved_step}: "
            f"go on with another setting, {self._advice()}."
        )

    def best_arrays(self) -> dict[str, Any]:
        """What the best checkpoint holds: the parameters of the model and of the bound."""
        return {"model": self.trainer.parameters(self.state), "bound": self.state.parameters[MAIN]["bound"]}

    def _advice(self) -> str:
        optimizer = self.plan.settings.optimizer
        if isinstance(optimizer, Adam):
            rate = f"{optimizer.learning_rate / 3:.1e}"
            return f"say --learning-rate {rate} --override (from Python: learning_rate={rate}, override=True)"
        return "say an optimizer with a smaller learning rate, and override=True"

    def _keep_best(self) -> None:
        """Write the best checkpoint if this is its step."""
        best = self.progress.best
        if best is not None and best.step == self.progress.step:
            self.run.write_best(serialization.to_arrays(self.best_arrays()), best)


def micro_batches(settings: Settings, dataset: Dataset) -> Batches:
    """Batches of similar lengths: as large as the step's sequences allow without padding more than 15 %."""
    lengths = dataset.lengths("train")
    wanted, smallest, seed = settings.sequences_per_step, settings.training.batch_size, settings.training.seed
    for size in range(min(wanted, len(lengths)), smallest, -1):
        if wanted % size == 0:
            candidate = Batches(lengths, size, seed)
            if candidate.waste(epochs=4) < MAX_WASTE:
                return candidate
    return Batches(lengths, smallest, seed)


def _like(arrays: dict[str, np.ndarray], content: bytes) -> dict[str, np.ndarray]:
    """Arrays of the same names, shapes and types, from their bytes one after the other."""
    ends = np.cumsum([array.nbytes for array in arrays.values()])
    parts = (content[end - array.nbytes : end] for end, array in zip(ends, arrays.values(), strict=True))
    return {
        name: np.frombuffer(part, array.dtype).reshape(array.shape)
        for part, (name, array) in zip(parts, arrays.items(), strict=True)
    }
