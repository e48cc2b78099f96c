"""N independent draws from the weights: `rsamp` of the paper's Algorithm 1."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling._inverse_cdf import ancestors_at, cumulative, cumulative_weights


def multinomial(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """N independent categorical draws, in ascending order: `rsamp` of the paper's Algorithm 1.

    The uniforms come sorted from normalised exponential spacings, in O(N), so that the search runs through memory in
    order.

    Args:
        key: a random key.
        log_weights: log-weights of the particles [particle], up to a constant.
        num_draws: N.

    Returns:
        The ancestors [num_draws], in ascending order.
    """
    return ancestors_at(sorted_uniforms(key, num_draws, log_weights.dtype), cumulative_weights(log_weights))


def conditional_multinomial(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, " particle"], Int[Array, ""]]:
    """A slot drawn uniformly continues the reference, the others draw as ever: Algorithm 2 as printed."""
    ancestor_key, slot_key = jax.random.split(key)
    size = log_weights.shape[0]
    slot = jax.random.randint(slot_key, (), 0, size, jnp.int32)
    # The draws come sorted; without one of them, chosen uniformly, they are N - 1 independent draws, sorted.
    drawn = multinomial(ancestor_key, log_weights, size)
    return drawn.at[slot].set(reference.astype(drawn.dtype)), slot


def multinomial_law(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> Float[Array, " particle"]:
    """log w of every ancestor drawn: what the paper's Eq. 5 means by log w_t^i."""
    return log_weights[ancestors]


def sorted_uniforms(key: Key[Array, ""], num_draws: int, dtype: jnp.dtype) -> Float[Array, " {num_draws}"]:
    """The order statistics of `num_draws` independent uniforms on [0, 1)."""
    arrivals = cumulative(jax.random.exponential(key, (num_draws + 1,), dtype))
    return arrivals[:-1] / arrivals[-1]
