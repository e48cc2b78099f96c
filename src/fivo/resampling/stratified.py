"""One uniform draw in each of N equal strata (Kitagawa 1996)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling.inverse_cdf import SMALL, ancestors_at, ancestors_of_counts, cumulative_weights


def stratified(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u_i) / N with independent u_i."""
    return at_strata(jax.random.uniform(key, (num_draws,), log_weights.dtype), log_weights)


def at_strata(offsets: Float[Array, " draw"], log_weights: Float[Array, " particle"]) -> Int[Array, " draw"]:
    """Ancestors at the points (i + offset_i) / N."""
    num_draws, edges = offsets.shape[0], cumulative_weights(log_weights)
    if edges.shape[0] <= SMALL:
        return ancestors_at((jnp.arange(num_draws, dtype=offsets.dtype) + offsets) / num_draws, edges)
    strata = num_draws * (edges / edges[-1])
    stratum = jnp.minimum(jnp.floor(strata).astype(jnp.int32), num_draws - 1)
    below = stratum + (stratum + offsets[stratum] < strata)
    return ancestors_of_counts(jnp.where(edges == edges[-1], num_draws, below), num_draws, offsets.dtype)
