"""Models, bounds and data of a configuration."""

from pathlib import Path

import numpy as np
from jaxtyping import Array, Key

from fivo.bounds import ELBO, FIVO, IWAE, Bound
from fivo.data import Dataset, load
from fivo.models import SRNN, VRNN, BernoulliEmission, NormalEmission, SequenceModel
from fivo.models.emissions import Emission
from fivo.resampling import ESSBelow
from fivo.training.config import TrainConfig

MODELS = {"vrnn": VRNN, "srnn": SRNN}
BOUNDS = ("elbo", "iwae", "fivo")


def build_dataset(config: TrainConfig, data_dir: str | Path | None = None) -> Dataset:
    """The data of a configuration."""
    return load(
        config.dataset,
        data_dir=data_dir,
        split_seed=config.split_seed,
        frame=config.frame,
        rate=config.rate,
        resample=config.resample,
    )


def build_model(config: TrainConfig, dataset: Dataset, *, key: Key[Array, ""]) -> SequenceModel:
    """The untrained model of a configuration."""
    return MODELS[config.model](build_emission(dataset), config.hidden, smoothing=config.smoothing, key=key)


def build_emission(dataset: Dataset) -> Emission:
    """What a dataset's frames are emitted by."""
    mean = np.asarray(dataset.train_mean, np.float32)
    return BernoulliEmission(mean) if dataset.kind == "pianoroll" else NormalEmission(mean)


def build_bound(name: str, num_particles: int, config: TrainConfig) -> Bound:
    """A bound by name, resampling as configured. The ELBO averages over its samples."""
    if name == "elbo":
        return ELBO(num_particles)
    if name == "iwae":
        return IWAE(num_particles)
    return FIVO(num_particles, resampling=config.resampling, criterion=ESSBelow(config.ess_threshold))


def training_bound(config: TrainConfig) -> Bound:
    """The bound that is maximised; the ELBO takes its budget in sequences, not in samples."""
    return build_bound(config.bound, 1 if config.bound == "elbo" else config.particles, config)


def validation_bound(config: TrainConfig) -> Bound:
    """The run's own bound, which selects the best step."""
    return build_bound(config.bound, validation_particles(config), config)


def validation_particles(config: TrainConfig) -> int:
    """N of the validation bound."""
    return config.validation_particles or config.particles
