"""Resampling as entropy-regularised optimal transport (Corenflos, Thornton, Deligiannidis and Doucet 2021)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, PyTree

from fivo.errors import InputError
from fivo.resampling._differentiable import DifferentiableScheme, Resampled, check_quadratic, mix, uniform_weights
from fivo.weights import log_sum_exp

MAX_PARTICLES = 256


class Transport(DifferentiableScheme):
    """Moves the weighted particles to equally weighted averages of them, by Sinkhorn's iteration.

    Deterministic and differentiable everywhere; costs are squared distances of the states, measured in units of their
    own spread. The averages are not draws from the weights: p̂ is consistent but biased, and its logarithm is not a
    lower bound. Time and memory grow with N².

    Args:
        entropy: strength of the entropic regularisation, positive; smaller is closer to optimal transport.
        iterations: Sinkhorn steps.
    """

    entropy: float = eqx.field(static=True, default=0.5)
    iterations: int = eqx.field(static=True, default=50)

    loses_bound: ClassVar[str | None] = "its particles are averages of states that no particle was in"

    def __check_init__(self) -> None:
        if not self.entropy > 0 or self.iterations < 1:
            raise InputError(
                "Transport must be given an entropy above 0 and at least one iteration, got "
                f"entropy={self.entropy!r:.60} and iterations={self.iterations!r:.60}."
            )

    def check(self, num_particles: int) -> None:
        """Refuse more particles than an N x N matrix per step allows.

        Args:
            num_particles: N.
        """
        check_quadratic(num_particles, MAX_PARTICLES, "transport")

    def resample(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Resampled:
        """Move the particles, as `DifferentiableScheme.resample` says.

        Args:
            key: a random key.
            log_weights: normalised log-weights [particle].
            state: the particles' states [particle, ...].

        Returns:
            The particles that the next step starts from.
        """
        plan = transport_plan(squared_distances(state), log_weights, self.entropy, self.iterations)
        ancestors = jnp.argmax(plan, axis=1).astype(jnp.int32)
        return Resampled(ancestors, mix(state, plan, "transport"), uniform_weights(log_weights))


def squared_distances(state: PyTree) -> Float[Array, "particle particle"]:
    """|h_i - h_j|² over the average of all pairs, which is not differentiated."""
    flat = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(state)]
    points = jnp.concatenate(flat, axis=1)
    squares = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1)
    spread = lax.stop_gradient(jnp.mean(squares))
    return squares / jnp.where(spread > 0, spread, 1)


def transport_plan(
    cost: Float[Array, "particle particle"], log_weights: Float[Array, " particle"], entropy: float, iterations: int
) -> Float[Array, "particle particle"]:
    """Row i says what the new particle i is made of: rows sum to one, columns to N w as far as the iteration got."""
    size = log_weights.shape[0]
    # A dead particle has no share; -inf itself would turn the derivatives of the iteration into NaN.
    floor = jnp.log(jnp.finfo(log_weights.dtype).tiny) / 2
    log_weights = jnp.maximum(log_weights, floor)
    kernel = -cost / entropy

    def step(potential: Float[Array, " particle"], _: None):
        columns = log_weights - log_sum_exp(kernel.T + potential[None, :])
        rows = -jnp.log(jnp.asarray(size, cost.dtype)) - log_sum_exp(kernel + columns[None, :])
        return rows, None

    rows, _ = lax.scan(step, jnp.zeros_like(log_weights), None, length=iterations)
    columns = log_weights - log_sum_exp(kernel.T + rows[None, :])
    return jax.nn.softmax(kernel + columns[None, :], axis=1)
