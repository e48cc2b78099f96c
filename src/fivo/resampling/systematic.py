"""One uniform draw shared by N equal strata (Carpenter, Clifford and Fearnhead 1999)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling.stratified import at_strata


def systematic(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u) / N with one u."""
    offset = jax.random.uniform(key, (), log_weights.dtype)
    return at_strata(jnp.broadcast_to(offset, (num_draws,)), log_weights)
