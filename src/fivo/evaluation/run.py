"""A trained run, read back from its directory."""

import os
from dataclasses import dataclass
from functools import cached_property

import jax

from fivo import serialization
from fivo.data import Dataset
from fivo.data import load as load_dataset
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.training import RunDirectory, TrainConfig
from fivo.training.build import build_model, training_bound
from fivo.training.step import Trainer


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
        trainer = Trainer(template, training_bound(self.config), self.config.learning_rate)
        return trainer.model(serialization.load(self._checkpoint, trainer.parameters(template)))

    @property
    def step(self) -> int:
        """The training step that the model is of."""
        return serialization.read_metadata(self._checkpoint)["step"]

    @property
    def _checkpoint(self) -> os.PathLike:
        if not self.directory.best.exists():
            raise InputError(
                f"{str(self.directory.path)!r} has no validated checkpoint yet; train it for at least "
                f"{self.config.validate_every} steps."
            )
        return self.directory.best


def open_run(
    directory: str | os.PathLike, *, data_dir: str | os.PathLike | None = None, dataset: Dataset | None = None
) -> Run:
    """The run of a directory; its dataset is found again under its name and must be the same."""
    files = RunDirectory(directory)
    config = files.config()
    dataset = load_dataset(config.dataset, data_dir=data_dir) if dataset is None else dataset
    if dataset.fingerprint != files.provenance()["dataset_fingerprint"]:
        raise InputError(
            f"{str(directory)!r} was trained on other data than what {config.dataset!r} is now; restore that data."
        )
    return Run(files, config, dataset)
