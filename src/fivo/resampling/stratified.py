"""One uniform draw in each of N equal strata (Kitagawa 1996)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling.inverse_cdf import ancestors_at, cumulative_weights


def stratified(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u_i) / N with independent u_i."""
    offsets = jax.random.uniform(key, (num_draws,), log_weights.dtype)
    points = (jnp.arange(num_draws, dtype=log_weights.dtype) + offsets) / num_draws
    return ancestors_at(points, cumulative_weights(log_weights))
