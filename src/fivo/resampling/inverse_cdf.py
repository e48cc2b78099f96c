"""Ancestors from sorted points on the cumulative weights: the common half of every scheme."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fivo.weights import normalize


SMALL = 64
"""Up to this many particles, comparing all points with all weights at once is faster than any search."""


def cumulative_weights(log_weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Non-decreasing cumulative weights; the last is their total, about one."""
    return cumulative(jnp.exp(normalize(log_weights)[0]))


def cumulative(weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Non-decreasing sums that grow at positive weights only.

    A parallel sum rounds differently at every entry, and may grow by a rounding error at a weight of zero; masked
    sums of a small number all round alike.
    """
    if weights.shape[0] <= SMALL:
        earlier = jnp.tril(jnp.ones((weights.shape[0],) * 2, bool))
        return jnp.sum(jnp.where(earlier, weights[None, :], 0), axis=1)
    return jnp.maximum.accumulate(jnp.where(weights > 0, jnp.cumsum(weights), 0))


def ancestors_at(points: Float[Array, " draw"], cumulative: Float[Array, " particle"]) -> Int[Array, " draw"]:
    """For each point of [0, 1) the first particle whose cumulative weight exceeds it.

    A particle of weight zero adds nothing to the cumulative weight and is never the first to exceed a point;
    points are kept below the total so that rounding cannot run past the last living particle.
    """
    total = cumulative[-1]
    below_total = jnp.nextafter(total, jnp.zeros_like(total))
    points = jnp.minimum(points * total, below_total)
    if cumulative.shape[0] <= SMALL:
        return jnp.sum(cumulative[None, :] <= points[:, None], axis=1, dtype=jnp.int32)
    return jnp.searchsorted(cumulative, points, side="right").astype(jnp.int32)
