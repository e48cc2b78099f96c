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


class StochasticVolatility(SequenceModel):
    """z_t = μ + φ (z_{t-1} - μ) + σ ε_t, started from its stationary law, and x_t = exp(z_t / 2) η_t.

    Args:
        mean: μ [dim], one number per independent series.
        persistence: φ [dim], between -1 and 1.
        scale: σ [dim], positive.
        proposal: `prior` (bootstrap) or `learned`, a normal whose mean moves linearly with log(x_t² + 1e-3).
    """

    mean: Float[Array, " dim"]
    persistence_logit: Float[Array, " dim"]
    log_scale: Float[Array, " dim"]
    learned: Float[Array, "3 dim"] | None
    proposal_kind: Proposal = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(self, *, mean=(0.0,), persistence=(0.95,), scale=(0.3,), proposal: Proposal = "prior") -> None:
        if proposal not in ("prior", "learned"):
            raise InputError(f"proposal must be 'prior' or 'learned', got {proposal!r}.")
        arrays = [jnp.asarray(value) for value in (mean, persistence, scale)]
        if len({a.shape for a in arrays}) != 1 or arrays[0].ndim != 1:
            raise InputError(
                "mean, persistence and scale must each hold one number per series, got shapes "
                f"{[a.shape for a in arrays]}."
            )
        for name, value, valid, wanted in (
            ("persistence", persistence, lambda v: np.abs(v) < 1, "numbers between -1 and 1"),
            ("scale", scale, lambda v: v > 0, "positive numbers"),
        ):
            if not isinstance(value, Tracer) and not np.all(valid(np.asarray(value))):
                raise InputError(f"{name} must hold {wanted}, got {np.asarray(value).tolist()}.")
        self.mean = arrays[0]
        self.persistence_logit = jnp.arctanh(arrays[1])
        self.log_scale = jnp.log(arrays[2])
        self.proposal_kind = proposal
        self.learned = jnp.zeros((3, *self.mean.shape), self.mean.dtype) if proposal == "learned" else None

    @property
    def persistence(self) -> Float[Array, " dim"]:
        """φ."""
        return jnp.tanh(self.persistence_logit)

    @property
    def scale(self) -> Float[Array, " dim"]:
        """σ."""
        return jnp.exp(self.log_scale)

    def encode(self, sequence):
        check_frames(sequence.observations, self.mean.shape[0])
        return None, _feature(sequence.observations, sequence.mask), None

    def encode_next(self, memory, x, mask, inputs):
        check_frames(x, self.mean.shape[0])
        return _feature(x, mask), None, memory

    def initial_prior(self, state, context):
        return dist.Normal(self.mean, self.scale / jnp.sqrt(1 - self.persistence**2))

    def prior(self, state, context):
        return dist.Normal(state, self.scale)

    def proposal(self, state, evidence, prior):
        if self.learned is None:
            return prior
        offset, slope, log_shrink = self.learned
        loc, scale = prior.loc, prior.scale  # pyright: ignore[reportAttributeAccessIssue]
        return dist.Normal(loc + offset + slope * evidence, scale * jnp.exp(log_shrink))

    def emission(self, state, latent, context):
        return dist.Normal(jnp.zeros_like(latent), jnp.exp(latent / 2))

    def advance(self, state, latent, history):
        return self.mean + self.persistence * (latent - self.mean)


def _feature(x: Float[Array, "*time dim"], mask) -> Float[Array, "*time dim"]:
    feature = jnp.log(x**2 + 1e-3)
    return feature if mask is None else jnp.where(mask, feature, 0)
