"""N independent draws from the weights: `rsamp` of the paper's Algorithm 1."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling.inverse_cdf import ancestors_at, cumulative, cumulative_weights


def multinomial(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """N i.i.d. categorical draws, returned in ascending order.

    The uniforms come sorted from normalised exponential spacings, in O(N), so that the search runs in order
    through memory.
    """
    return ancestors_at(sorted_uniforms(key, num_draws, log_weights.dtype), cumulative_weights(log_weights))


def sorted_uniforms(key: Key[Array, ""], num_draws: int, dtype: jnp.dtype) -> Float[Array, " {num_draws}"]:
    """The order statistics of `num_draws` independent uniforms on [0, 1)."""
    arrivals = cumulative(jax.random.exponential(key, (num_draws + 1,), dtype))
    return arrivals[:-1] / arrivals[-1]
