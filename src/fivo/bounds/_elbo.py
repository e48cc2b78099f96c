"""The evidence lower bound (Eq. 1 of the paper)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from fivo.batch import as_batch
from fivo.bounds._estimate import estimate, first_copies, independent_copies
from fivo.bounds._result import BoundResult, bound_info
from fivo.errors import InputError
from fivo.gradients import DoublyReparameterized, Gradient, Score, get_gradient
from fivo.models import SequenceModel
from fivo.resampling import Never
from fivo.smc import ParticleFilter, check_particles


class ELBO(eqx.Module):
    """E[log p(x, z) - log q(z | x)], averaged over independent latents.

    Args:
        num_particles: how many latents are drawn for each sequence.
        gradient: what `jax.grad` of the bound follows, by name or as a `fivo.gradients.Gradient`.
    """

    num_particles: int = eqx.field(static=True)
    gradient: Gradient

    def __init__(self, num_particles: int = 1, *, gradient: str | Gradient = "pathwise") -> None:
        check_particles(num_particles)
        self.num_particles, self.gradient = num_particles, get_gradient(gradient)
        if isinstance(self.gradient, DoublyReparameterized):
            raise InputError(
                "the gradient of the ELBO must not be doubly-reparameterized, as its samples have equal weights; use "
                "gradient='sticking-the-landing', which is unbiased for it."
            )
        self.gradient.check(self.filter)

    @property
    def filter(self) -> ParticleFilter:
        """Samples that are scored are filters of one particle each: what follows a latent is its own weight."""
        return ParticleFilter(1 if self._scored else self.num_particles, criterion=Never())

    @property
    def _scored(self) -> bool:
        return isinstance(self.gradient, Score)

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """One draw of the averaged log-weight for every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.

        Returns:
            One draw per sequence, and what happened along time.
        """
        batch = as_batch(batch)
        if self._scored:
            copied, keys = independent_copies(batch, key, self.num_particles)
            log_evidence, result = estimate(self.filter, self.gradient, model, copied, keys)
            log_evidence, info = first_copies(log_evidence, bound_info(result), self.num_particles)
            return BoundResult(log_evidence, info)
        log_evidence, result = estimate(self.filter, self.gradient, model, batch, key)
        # A particle's own log-weight is its normalised one put back on the scale of the sum: log w + log N + log p̂.
        relative = result.particles.log_weights + jnp.log(jnp.asarray(self.num_particles, result.ess.dtype))
        return BoundResult(log_evidence + jnp.mean(relative, axis=1), bound_info(result))
