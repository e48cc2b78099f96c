"""What every gradient estimator does."""

from collections.abc import Collection
from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.resampling import CarryingScheme, Criterion, Never, Scheme
from fivo.smc import FilterResult, filter
from fivo.smc.filter import Record
from fivo.smc.step import EVERY_PATH, Paths


class Setting(eqx.Module):
    """A particle filter without its data: N, how ancestors are drawn, and when."""

    num_particles: int = eqx.field(static=True)
    scheme: Scheme | CarryingScheme = eqx.field(static=True)
    criterion: Criterion

    @property
    def resamples(self) -> bool:
        """Whether particles are ever exchanged."""
        return not isinstance(self.criterion, Never)

    def run(
        self,
        model: SequenceModel,
        batch: Batch,
        key: Key[Array, "*batch"],
        *,
        paths: Paths = EVERY_PATH,
        keep: Collection[Record] = (),
        scheme: Scheme | CarryingScheme | None = None,
    ) -> FilterResult:
        """The filter; `scheme` stands in for the setting's own."""
        return filter(
            model,
            batch,
            num_particles=self.num_particles,
            resampling=self.scheme if scheme is None else scheme,
            criterion=self.criterion,
            key=key,
            keep=keep,
            paths=paths,
        )


class Estimate(NamedTuple):
    """log p̂ of every sequence, whose derivative is the estimator, and the filter's run behind it."""

    log_evidence: Float[Array, " batch"]
    result: FilterResult


class Gradient(eqx.Module):
    """An estimator of ∇E[log p̂]."""

    def check(self, setting: Setting) -> None:
        """Refuse a filter that this gradient means nothing for."""
        raise NotImplementedError

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        """Run the filter once (or as often as the estimator needs)."""
        raise NotImplementedError

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "Gradient":
        """The estimator after it has seen a run; most learn nothing."""
        return self


def refuse_carrying(setting: Setting, name: str) -> None:
    """Schemes that carry gradients are a choice of gradient themselves."""
    if isinstance(setting.scheme, CarryingScheme):
        raise InputError(
            f"got the {name} gradient with {type(setting.scheme).__name__.lower()} resampling, through which "
            "derivatives pass already; use it with gradient='pathwise', or multinomial resampling with this gradient."
        )


def refuse_discrete(result: FilterResult, name: str) -> None:
    """Discrete latents cannot be reparameterised."""
    if result.discrete:
        raise InputError(discrete_sentence(name))


def discrete_sentence(name: str) -> str:
    """Why a gradient needs reparameterised latents, and what does not."""
    return (
        f"the {name} gradient follows latents through their draws, but this model's are discrete; use gradient='score' "
        "(or 'latent-score', which drops the resampling term)."
    )


def slope_only(term: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Zero with the derivative of `term`."""
    return term - jax.lax.stop_gradient(term)
