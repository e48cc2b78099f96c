"""A trained run, read back from its directory."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jax

from fivo import serialization
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.training import RunDirectory, TrainConfig
from fivo.training.build import build_dataset, build_model
from fivo.training.step import trainable, with_parameters


@dataclass(frozen=True)
class Run:
    """What `fivo train` left: settings, data, and the model that was best on validation."""

    directory: RunDirectory
    config: TrainConfig
    dataset: Dataset

    @cached_property
    def model(self) -> SequenceModel:
        """The model with the best parameters so far."""
        template = build_model(self.config, self.dataset, key=jax.random.key(0))
        return with_parameters(template, serialization.load(self._checkpoint, trainable(template)))

    @property
    def step(self) -> int:
        """The training step that the model is of."""
        return serialization.read_metadata(self._checkpoint)["step"]

    @property
    def _checkpoint(self) -> Path:
        if not self.directory.best.exists():
            raise InputError(
                f"{str(self.directory.path)!r} has no validated checkpoint yet; train it for at least "
                f"{min(self.config.validate_every, self.config.steps)} steps."
            )
        return self.directory.best


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
