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
    CategoricalEmission,
    CategoricalLatent,
    Emission,
    MixedEmission,
    NegativeBinomialEmission,
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
    return model_with(build_emission(dataset), config, num_inputs=len(dataset.input_columns), key=key)


def model_with(emission: Emission, config: TrainConfig, *, num_inputs: int = 0, key: Key[Array, ""]) -> SequenceModel:
    """The untrained model of a configuration with an emission that was built before."""
    return MODELS[config.model](
        emission,
        config.hidden,
        latent=LATENTS[config.latent](config.hidden),
        smoothing=config.smoothing,
        num_inputs=num_inputs,
        key=key,
    )


def build_emission(dataset: Dataset) -> Emission:
    """What a dataset's frames are emitted by, from the kinds of its columns and their statistics in train."""
    groups: dict[tuple[str, int], list[int]] = {}
    for index, column in enumerate(dataset.columns):
        groups.setdefault((column.kind, len(column.categories)), []).append(index)
    parts = [(_emission(dataset, kind, places), places) for (kind, _), places in groups.items()]
    return parts[0][0] if len(parts) == 1 else MixedEmission(*parts)


def _emission(dataset: Dataset, kind: str, places: list[int]) -> Emission:
    """Of the columns of one kind; category columns that come together have equally many categories."""
    if kind == "category":
        return CategoricalEmission(np.stack([dataset.train_rates(place) for place in places]))
    mean = np.asarray(dataset.train_mean, np.float32)[places]
    if kind == "binary":
        return BernoulliEmission(mean)
    if kind == "count":
        return NegativeBinomialEmission(mean)
    # What is not standardised is read and emitted in units of its spread, but for waveforms: theirs is the paper's way.
    if dataset.sound is not None or all(dataset.columns[place].is_scaled for place in places):
        return NormalEmission(mean)
    return NormalEmission(mean, np.asarray(dataset.train_deviation, np.float32)[places])


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
