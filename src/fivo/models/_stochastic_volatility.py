"""Stochastic volatility of returns: the field's usual benchmark without a closed form."""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.core import Tracer
from jaxtyping import Array, Float

from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._emissions import check_frames

Proposal = Literal["prior", "learned"]
_LIMITS = {
    "persistence": (lambda value: np.abs(value) < 1, "numbers between -1 and 1"),
    "scale": (lambda value: value > 0, "positive numbers"),
    "emission_scale": (lambda value: value > 0, "positive numbers"),
}


class StochasticVolatility(SequenceModel):
    """z_t = μ + φ (z_{t-1} - μ) + σ ε_t, started from its stationary law, and x_t = β exp(z_t / 2) η_t.

    Args:
        mean: μ [dim], one number per independent series.
        persistence: φ [dim], between -1 and 1.
        scale: σ [dim], positive.
        emission_scale: β [dim], positive; None means ones that are not learned, as μ says the same.
        stationary: start from N(μ, σ² / (1 - φ²)); without it from N(μ, σ²), as Lawson et al. (2022) do.
        proposal: `prior` (bootstrap) or `learned`, a normal whose mean moves linearly with log(x_t² + 1e-3).
    """

    mean: Float[Array, " dim"]
    persistence_logit: Float[Array, " dim"]
    log_scale: Float[Array, " dim"]
    log_emission_scale: Float[Array, " dim"] | None
    learned: Float[Array, "3 dim"] | None
    proposal_kind: Proposal = eqx.field(static=True)
    stationary: bool = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(
        self,
        *,
        mean=(0.0,),
        persistence=(0.95,),
        scale=(0.3,),
        emission_scale=None,
        stationary: bool = True,
        proposal: Proposal = "prior",
    ) -> None:
        if proposal not in ("prior", "learned"):
            raise InputError(f"proposal must be 'prior' or 'learned', got {proposal!r}.")
        given = {"mean": mean, "persistence": persistence, "scale": scale}
        given |= {} if emission_scale is None else {"emission_scale": emission_scale}
        arrays = {name: jnp.asarray(value) for name, value in given.items()}
        if len({a.shape for a in arrays.values()}) != 1 or arrays["mean"].ndim != 1:
            raise InputError(
                f"{', '.join(list(given)[:-1])} and {list(given)[-1]} must each hold one number per series, got shapes "
                f"{[a.shape for a in arrays.values()]}."
            )
        for name, value in given.items():
            valid, wanted = _LIMITS.get(name, (np.isfinite, "numbers"))
            if not isinstance(value, Tracer) and not np.all(valid(np.asarray(value))):
                raise InputError(f"{name} must hold {wanted}, got {np.asarray(value).tolist()}.")
        self.mean = arrays["mean"]
        self.persistence_logit = jnp.arctanh(arrays["persistence"])
        self.log_scale = jnp.log(arrays["scale"])
        self.log_emission_scale = None if emission_scale is None else jnp.log(arrays["emission_scale"])
        self.proposal_kind, self.stationary = proposal, stationary
        self.learned = jnp.zeros((3, *self.mean.shape), self.mean.dtype) if proposal == "learned" else None

    @property
    def persistence(self) -> Float[Array, " dim"]:
        """φ."""
        return jnp.tanh(self.persistence_logit)

    @property
    def scale(self) -> Float[Array, " dim"]:
        """σ."""
        return jnp.exp(self.log_scale)

    @property
    def emission_scale(self) -> Float[Array, " dim"]:
        """β."""
        return jnp.ones_like(self.mean) if self.log_emission_scale is None else jnp.exp(self.log_emission_scale)

    def encode(self, sequence):
        check_frames(sequence.observations, self.mean.shape[0])
        return None, _feature(sequence.observations, sequence.mask), None

    def encode_next(self, memory, x, mask, inputs):
        check_frames(x, self.mean.shape[0])
        return _feature(x, mask), None, memory

    def initial_prior(self, state, context):
        scale = self.scale / jnp.sqrt(1 - self.persistence**2) if self.stationary else self.scale
        return dist.Normal(self.mean, scale)

    def prior(self, state, context):
        return dist.Normal(state, self.scale)

    def proposal(self, state, evidence, prior):
        if self.learned is None:
            return prior
        offset, slope, log_shrink = self.learned
        loc, scale = prior.loc, prior.scale  # pyright: ignore[reportAttributeAccessIssue]
        return dist.Normal(loc + offset + slope * evidence, scale * jnp.exp(log_shrink))

    def emission(self, state, latent, context):
        mean, volatility = jnp.zeros_like(latent), jnp.exp(latent / 2)
        if self.log_emission_scale is not None:
            volatility = jnp.exp(self.log_emission_scale) * volatility
        return dist.Normal(mean, volatility)

    def advance(self, state, latent, history):
        return self.mean + self.persistence * (latent - self.mean)


def _feature(x: Float[Array, "*time dim"], mask) -> Float[Array, "*time dim"]:
    feature = jnp.log(x**2 + 1e-3)
    return feature if mask is None else jnp.where(mask, feature, 0)
