"""Models, bounds and data of a configuration."""

from pathlib import Path

import numpy as np
from jaxtyping import Array, Key

from fivo.bounds import ELBO, FIVO, IWAE, Bound
from fivo.data import Dataset, load
from fivo.errors import InputError
from fivo.gradients import GRADIENTS, Gradient, Pathwise, get_gradient
from fivo.models import (
    SRNN,
    VRNN,
    BernoulliEmission,
    CategoricalLatent,
    Emission,
    NormalEmission,
    NormalLatent,
    SequenceModel,
)
from fivo.resampling import ESSBelow, bound_lost, get_scheme
from fivo.training.config import TrainConfig

MODELS = {"vrnn": VRNN, "srnn": SRNN}
LATENTS = {"normal": NormalLatent, "categorical": CategoricalLatent}
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
    return model_with(build_emission(dataset), config, key=key)


def model_with(emission: Emission, config: TrainConfig, *, key: Key[Array, ""]) -> SequenceModel:
    """The untrained model of a configuration with an emission that was built before."""
    return MODELS[config.model](
        emission,
        config.hidden,
        latent=LATENTS[config.latent](config.hidden),
        smoothing=config.smoothing,
        key=key,
    )


def build_emission(dataset: Dataset) -> Emission:
    """What a dataset's frames are emitted by."""
    mean = np.asarray(dataset.train_mean, np.float32)
    return BernoulliEmission(mean) if dataset.kind == "pianoroll" else NormalEmission(mean)


def build_bound(
    name: str,
    num_particles: int,
    config: TrainConfig,
    *,
    gradient: Gradient | None = None,
    resampling: str | None = None,
) -> Bound:
    """A bound by name, resampling as configured unless said otherwise. The ELBO averages over its samples."""
    gradient = Pathwise() if gradient is None else gradient
    if name == "elbo":
        return ELBO(num_particles, gradient=gradient)
    if name == "iwae":
        return IWAE(num_particles, gradient=gradient)
    return FIVO(
        num_particles,
        resampling=resampling or config.resampling,
        criterion=ESSBelow(config.ess_threshold),
        gradient=gradient,
    )


def training_bound(config: TrainConfig) -> Bound:
    """The bound that is maximised; the ELBO takes its budget in sequences, not in samples."""
    if config.latent == "categorical" and GRADIENTS[config.gradient].follows_latents:
        raise InputError(
            f"got categorical latents with the {config.gradient} gradient, which follows latents through their draws; "
            "use --gradient score, or latent-score, which drops the resampling term."
        )
    gradient = get_gradient(config.gradient, config.baseline)
    return build_bound(config.bound, 1 if config.bound == "elbo" else config.particles, config, gradient=gradient)


def validation_bound(config: TrainConfig) -> Bound:
    """The run's own bound, which selects the best step."""
    return build_bound(config.bound, validation_particles(config), config, resampling=bounding_resampling(config))


def bounding_resampling(config: TrainConfig) -> str:
    """The run's resampling, or multinomial where FIVO with it is no lower bound."""
    return "multinomial" if bound_lost(get_scheme(config.resampling)) else config.resampling


def validation_particles(config: TrainConfig) -> int:
    """N of the validation bound."""
    return config.validation_particles or config.particles
