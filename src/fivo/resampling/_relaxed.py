"""Relaxed resampling: averages in place of draws (Gumbel-softmax; Jang et al. 2017, Maddison et al. 2017)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from fivo.errors import InputError
from fivo.resampling._differentiable import DifferentiableScheme, Resampled, check_quadratic, mix, uniform_weights

MAX_PARTICLES = 1024


class Relaxed(DifferentiableScheme):
    """Particle i continues in the state Σ_j y_ij h_j with y_i = softmax((log w + Gumbel noise) / temperature).

    At temperature 0 this would be multinomial resampling. Above it, states are averages that no particle was in: p̂ is
    no longer unbiased, and its logarithm no longer a lower bound.

    Args:
        temperature: how much states are averaged, positive.
    """

    temperature: float = eqx.field(static=True, default=0.5)

    loses_bound: ClassVar[str | None] = "its particles are averages of states that no particle was in"

    def __check_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"Relaxed must be given a temperature above 0, got {self.temperature!r:.60}.")

    def check(self, num_particles: int) -> None:
        """Refuse more particles than an N x N matrix per step allows.

        Args:
            num_particles: N.
        """
        check_quadratic(num_particles, MAX_PARTICLES, "relaxed")

    def resample(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Resampled:
        """Move the particles, as `DifferentiableScheme.resample` says.

        Args:
            key: a random key.
            log_weights: normalised log-weights [particle].
            state: the particles' states [particle, ...].

        Returns:
            The particles that the next step starts from.
        """
        size = log_weights.shape[0]
        noise = jax.random.gumbel(key, (size, size), log_weights.dtype)
        rows = jnp.broadcast_to(log_weights, (size, size))
        shares = jax.nn.softmax((rows + noise) / self.temperature, axis=1)
        ancestors = jnp.argmax(shares, axis=1).astype(jnp.int32)
        return Resampled(ancestors, mix(state, shares, "relaxed"), uniform_weights(log_weights))
