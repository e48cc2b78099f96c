"""One uniform draw shared by N equal strata (Carpenter, Clifford and Fearnhead 1999)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling.inverse_cdf import ancestors_at, cumulative_weights


def systematic(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u) / N with one u."""
    offset = jax.random.uniform(key, (), log_weights.dtype)
    points = (jnp.arange(num_draws, dtype=log_weights.dtype) + offset) / num_draws
    return ancestors_at(points, cumulative_weights(log_weights))
