"""Ancestors from sorted points on the cumulative weights: the common half of every scheme.

Nothing here is larger than O(N): sums run in blocks as matrix products, and where the number of points below an edge
is known in closed form, ancestors come from offspring counts instead of a search.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fivo.weights import normalize

SMALL = 64
"""Up to this many particles, comparing all points with all weights at once is faster than anything else."""
BLOCK = 32


def cumulative_weights(log_weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Non-decreasing cumulative weights; the last is their total, about one."""
    return cumulative(jnp.exp(normalize(log_weights)[0]))


def cumulative(weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """Non-decreasing sums that grow at positive weights only, whatever the rounding.

    Blocks are summed by one product with a triangular matrix, in which equal prefixes round alike. A block's sums are
    kept between the end of the block before and its own end, which everything behind its last positive weight equals.
    """
    size = weights.shape[0]
    if size <= SMALL:
        earlier = jnp.tril(jnp.ones((size, size), bool))
        return jnp.sum(jnp.where(earlier, weights[None, :], 0), axis=1)
    within = sums_in_blocks(jnp.pad(weights, (0, -size % BLOCK)))
    ends = cumulative(within[:, -1])
    starts = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    return between(within, starts, ends)[:size]


def sums_in_blocks(weights: Float[Array, " particle"]) -> Float[Array, "block size"]:
    """Cumulative sums that start anew with every block."""
    return weights.reshape(-1, BLOCK) @ jnp.triu(jnp.ones((BLOCK, BLOCK), weights.dtype))


def between(
    within: Float[Array, "block size"], starts: Float[Array, " block"], ends: Float[Array, " block"]
) -> Float[Array, " particle"]:
    """The sums of blocks, of which each lies between the end of the block before and its own."""
    sums = jnp.minimum(starts[:, None] + within, ends[:, None])
    return jnp.where(within == within[:, -1:], ends[:, None], sums).reshape(-1)


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


def ancestors_of_counts(
    points_below: Int[Array, " particle"], num_draws: int, dtype: jnp.dtype, first: Int[Array, ""] | int = 0
) -> Int[Array, " {num_draws}"]:
    """Ancestors of sorted points, of which `points_below[j]` lie below the upper edge of particle j.

    Those of `num_draws` points from the `first` on.
    """
    places = jnp.maximum(points_below - first, 0)
    edges = jnp.zeros(num_draws, dtype).at[places].add(1, mode="drop", indices_are_sorted=True)
    return cumulative(edges).astype(jnp.int32)
