"""What a run is made of: settings, and the objects that they describe or name."""

from dataclasses import dataclass

import jax
import optax
from jaxtyping import Array, Key

from fivo import settings as kinds
from fivo._building import bounding_resampling, build_bound
from fivo.bounds import Bound, Exact
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.gradients import GRADIENTS, get_gradient
from fivo.models import SequenceModel
from fivo.settings import Settings
from fivo.training.groups import Update
from fivo.training.optimizer import Optimizer, adam
from fivo.training.twists import density_ratio, temporal_difference


@dataclass(frozen=True)
class Plan:
    """Everything that a run is made of: its settings, and the objects that they describe or name."""

    settings: Settings
    """All settings."""
    dataset: Dataset
    """The data."""
    model: SequenceModel
    """The untrained model."""
    bound: Bound
    """What is maximised."""
    validation: Bound
    """What is computed on the validation split, and selects the best step."""
    optimizer: Optimizer
    """How parameters follow the gradient."""
    updates: tuple[Update, ...] = ()
    """Further losses."""


def make_plan(
    settings: Settings,
    dataset: Dataset,
    model: SequenceModel,
    *,
    bound: Bound | None = None,
    validation: Bound | None = None,
    optimizer: Optimizer | None = None,
    updates: tuple[Update, ...] = (),
) -> Plan:
    """The plan of a run; what is not given as an object is built from the settings.

    Args:
        settings: All settings of the run.
        dataset: Its data.
        model: The model that training starts from.
        bound: What is maximised; `settings.bound` by default.
        validation: What selects the best step; by default the bound itself.
        optimizer: How parameters follow; `settings.optimizer` by default.
        updates: Further losses.

    Returns:
        The plan.
    """
    bound = training_bound(settings) if bound is None else bound
    if isinstance(bound, Exact):
        bound.check(model)
    if validation is None:
        validation = bound if isinstance(settings.bound, kinds.OwnBound) else validation_bound(settings)
    return Plan(
        settings,
        dataset,
        model,
        bound,
        validation,
        build_optimizer(settings) if optimizer is None else optimizer,
        (*updates, *twist_updates(settings)),
    )


def twist_updates(settings: Settings) -> tuple[Update, ...]:
    """The loss of a twist that does not follow the bound."""
    chosen = settings.twist
    if not isinstance(chosen, kinds.RecurrentTwist):
        return ()
    if chosen.twist_training == "bound":
        gradient = GRADIENTS[getattr(settings.bound, "gradient", "pathwise")]
        if not getattr(gradient, "of_ancestors", False):
            raise InputError(
                f"a twist that is trained by the bound must have a gradient that scores ancestors, got "
                f"{gradient.name}, which leads it astray; say --gradient resampling-score, or --twist-training dre."
            )
        return ()
    make = density_ratio if chosen.twist_training == "dre" else temporal_difference
    optimizer = optax.adam(chosen.twist_learning_rate)
    return (make(optimizer, repeats=chosen.twist_repeats, copies=chosen.twist_copies),)


def run_keys(settings: Settings) -> Key[Array, " three"]:
    """The random keys of a run: of the model's first parameters, of training and of validation."""
    return jax.random.split(jax.random.key(settings.training.seed), 3)


def model_key(settings: Settings) -> Key[Array, ""]:
    """The random key of the model's first parameters."""
    return run_keys(settings)[0]


def training_bound(settings: Settings) -> Bound:
    """The bound that is maximised; the ELBO takes its budget in sequences, not in samples."""
    chosen = settings.bound
    if isinstance(chosen, kinds.OwnBound):
        raise InputError(f"the run's bound is {chosen.bound_name}, which a run directory does not hold; give it again.")
    if isinstance(chosen, kinds.Exact):
        return build_bound("exact", 1, chosen)
    latent = getattr(settings.model, "latent", "normal")
    if latent == "categorical" and GRADIENTS[chosen.gradient].follows_latents:
        raise InputError(
            "categorical latents must have a gradient that does not follow latents through their draws, got "
            f"{chosen.gradient}; use --gradient score, or latent-score, which drops the resampling term."
        )
    gradient = get_gradient(chosen.gradient, chosen.baseline)
    num_particles = 1 if isinstance(chosen, kinds.ELBO) else chosen.particles
    return build_bound(chosen.kind, num_particles, chosen, gradient=gradient)


def validation_bound(settings: Settings) -> Bound:
    """The run's own bound, which selects the best step."""
    resampling = bounding_resampling(settings)
    return build_bound(settings.bound.kind, validation_particles(settings), settings.bound, resampling=resampling)


def validation_particles(settings: Settings) -> int:
    """N of the validation bound; of bounds that do not say theirs, a guess that only chooses shapes."""
    return settings.training.validation_particles or settings.particles or kinds.FIVO().particles


def build_optimizer(settings: Settings) -> Optimizer:
    """The optimizer of the settings."""
    if isinstance(settings.optimizer, kinds.OwnOptimizer):
        raise InputError("the run's optimizer is one of your own, which a run directory does not hold; give it again.")
    return adam(settings.optimizer, settings.training.steps)
