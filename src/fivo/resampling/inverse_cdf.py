"""Ancestors from sorted points on the cumulative weights: the common half of every scheme."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fivo.weights import normalize


def cumulative_weights(log_weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Non-decreasing cumulative weights; the last is their total, about one."""
    normalised, _ = normalize(log_weights)
    return jnp.maximum.accumulate(jnp.cumsum(jnp.exp(normalised)))


def ancestors_at(points: Float[Array, " draw"], cumulative: Float[Array, " particle"]) -> Int[Array, " draw"]:
    """For each point of [0, 1) the first particle whose cumulative weight exceeds it.

    A particle of weight zero adds nothing to the cumulative weight and is never the first to exceed a point;
    points are kept below the total so that rounding cannot run past the last living particle.
    """
    total = cumulative[-1]
    below_total = jnp.nextafter(total, jnp.zeros_like(total))
    return jnp.searchsorted(cumulative, jnp.minimum(points * total, below_total), side="right").astype(jnp.int32)
