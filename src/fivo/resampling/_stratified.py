"""One uniform draw in each of N equal strata (Kitagawa 1996)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling._inverse_cdf import SMALL, ancestors_at, ancestors_of_counts, cumulative_weights


def stratified(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u_i) / N with independent uniform u_i.

    Args:
        key: a random key.
        log_weights: log-weights of the particles [particle], up to a constant.
        num_draws: N.

    Returns:
        The ancestors [num_draws], in ascending order.
    """
    return at_strata(jax.random.uniform(key, (num_draws,), log_weights.dtype), log_weights)


def conditional_stratified(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, " particle"], Int[Array, ""]]:
    """The reference's point is uniform on its share of [0, 1) and thereby fixes its stratum; the others are free."""
    point_key, offset_key = jax.random.split(key)
    offsets = jax.random.uniform(offset_key, log_weights.shape, log_weights.dtype)
    slot, offset = reference_point(point_key, log_weights, reference)
    return at_points(offsets.at[slot].set(offset), log_weights, reference, slot), slot


def stratified_law(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> Float[Array, " particle"]:
    """log of the part of its stratum that each ancestor covers."""
    lower, upper = edges_from_stratum(log_weights, ancestors)
    return safe_log(jnp.minimum(upper, 1) - jnp.maximum(lower, 0))


def at_strata(offsets: Float[Array, " draw"], log_weights: Float[Array, " particle"]) -> Int[Array, " draw"]:
    """Ancestors at the points (i + offset_i) / N."""
    num_draws, edges = offsets.shape[0], cumulative_weights(log_weights)
    if edges.shape[0] <= SMALL:
        return ancestors_at((jnp.arange(num_draws, dtype=offsets.dtype) + offsets) / num_draws, edges)
    return ancestors_of_counts(points_below(offsets, edges, edges[-1]), num_draws, offsets.dtype)


def points_below(
    offsets: Float[Array, " draw"], edges: Float[Array, " particle"], total: Float[Array, ""]
) -> Int[Array, " particle"]:
    """How many of the points (i + offset_i) / N lie below each of these cumulative weights."""
    num_draws = offsets.shape[0]
    strata = num_draws * (edges / total)
    stratum = jnp.minimum(jnp.floor(strata).astype(jnp.int32), num_draws - 1)
    below = stratum + (stratum + offsets[stratum] < strata)
    return jnp.where(edges == total, num_draws, below)


def reference_point(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """(stratum, offset in it) of a uniform point of the reference's share."""
    edges = cumulative_weights(log_weights)
    low = jnp.where(reference > 0, edges[reference - 1], 0)
    point = low + (edges[reference] - low) * jax.random.uniform(key, (), log_weights.dtype)
    place = log_weights.shape[0] * (point / edges[-1])
    slot = jnp.minimum(jnp.floor(place).astype(jnp.int32), log_weights.shape[0] - 1)
    return slot, jnp.clip(place - slot, 0, 1)


def at_points(
    offsets: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    reference: Int[Array, ""],
    slot: Int[Array, ""],
) -> Int[Array, " particle"]:
    """Ancestors at the points (i + offset_i) / N, of which the reference's own is known."""
    size = log_weights.shape[0]
    points = (jnp.arange(size, dtype=offsets.dtype) + offsets) / size
    drawn = ancestors_at(points, cumulative_weights(log_weights))
    # Rounding must not give the reference's own point to a neighbour.
    return drawn.at[slot].set(reference.astype(drawn.dtype))


def edges_from_stratum(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> tuple[Float[Array, " particle"], Float[Array, " particle"]]:
    """The cumulative weights around each ancestor, in units of strata from the start of its stratum."""
    size = ancestors.shape[0]
    upper = jnp.cumsum(jnp.exp(log_weights))
    lower = jnp.concatenate([jnp.zeros_like(upper[:1]), upper[:-1]])
    stratum = jnp.arange(size, dtype=upper.dtype)
    return size * lower[ancestors] - stratum, size * upper[ancestors] - stratum


def safe_log(length: Float[Array, "*draw"]) -> Float[Array, "*draw"]:
    """log of a length that rounding may have made zero; a draw of probability zero has no score."""
    return jnp.log(jnp.where(length > 0, length, 1))
