"""A trained run, read back from its directory."""

import os
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from fivo import serialization
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.models import SequenceModel
from fivo.runs import Best, Result
from fivo.training import RunDirectory, TrainConfig
from fivo.training.build import build_dataset, build_model
from fivo.training.step import trainable, with_parameters

WIDTH = 100
"""Characters of a line that describes a run."""


@dataclass(frozen=True, repr=False)
class Run:
    """What `fivo train` left: settings, data, and the model that was best on validation."""

    directory: RunDirectory
    config: TrainConfig
    dataset: Dataset

    @cached_property
    def model(self) -> SequenceModel:
        """The model with the best parameters so far."""
        template = build_model(self.config, self.dataset, key=jax.random.key(0))
        arrays = self._best[0]
        return with_parameters(template, serialization.from_arrays(arrays, trainable(template), self.directory.best))

    @property
    def step(self) -> int:
        """The training step that the model is of."""
        return self._best[1].step

    @cached_property
    def _best(self) -> tuple[dict[str, np.ndarray], Best]:
        where = str(self.directory.path)
        if not self.directory.best.exists() and not (self.directory.path / Result.FILE).exists():
            raise InputError(
                f"{where!r} has no validated checkpoint yet; train it for at least "
                f"{min(self.config.validate_every, self.config.steps)} steps."
            )
        try:
            if self.directory.best.exists():
                return self.directory.read_best()
        except DamagedError:
            pass
        raise DamagedError(
            f"{str(self.directory.best)!r} is lost or damaged; run `fivo train` with the run's settings again, which "
            "makes it anew."
        )

    def __repr__(self) -> str:
        """Where it is, what is special about it and how far it has come, in a few lines."""
        defaults = TrainConfig()
        told = {name: getattr(self.config, name) for name in TrainConfig.__struct_fields__}
        shown = [f"{name}={value!r}" for name, value in told.items() if value != getattr(defaults, name)]
        lines = [f"Run({str(self.directory.path)!r})", *textwrap.wrap(", ".join(shown), WIDTH), self._state()]
        return "\n  ".join(line for line in lines if line)

    def _state(self) -> str:
        try:
            progress = self.directory.progress()
        except InputError as problem:
            return str(problem)
        if progress is None:
            return "not trained yet"
        state = f"step {progress.step} of {self.config.steps}"
        if progress.best_validation is None:
            return f"{state}, not validated yet"
        return f"{state}, best step {progress.best_step}: {progress.best_validation:.4f} nats per step on validation"


def open_run(
    directory: str | os.PathLike, *, data_dir: str | Path | None = None, dataset: Dataset | None = None
) -> Run:
    """The run of a directory; its dataset is found again under its name and must be the same."""
    files = RunDirectory(directory)
    config = files.config()
    dataset = build_dataset(config, data_dir) if dataset is None else dataset
    if dataset.fingerprint != files.fingerprint():
        raise InputError(
            f"{str(directory)!r} was trained on other data than what {config.dataset!r} is now; restore that data."
        )
    return Run(files, config, dataset)
