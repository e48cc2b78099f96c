"""⌊N w⌋ copies for certain, the remainder by independent draws (Liu and Chen 1998)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling._inverse_cdf import ancestors_at, cumulative
from fivo.weights import normalize


def residual(key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int) -> Int[Array, " {num_draws}"]:
    """⌊N w⌋ certain copies of each particle, in order, then draws from the fractional parts of N w.

    Args:
        key: a random key.
        log_weights: log-weights of the particles [particle], up to a constant.
        num_draws: N.

    Returns:
        The ancestors [num_draws]: first the certain copies, then the draws.
    """
    expected = num_draws * jnp.exp(normalize(log_weights)[0])
    # Rounding must not turn a whole number of copies into chance: equal weights keep every particle.
    certain = jnp.floor(expected * (1 + 32 * jnp.finfo(expected.dtype).eps))
    uncertain = jnp.maximum(expected - certain, 0)
    uncertain = jnp.where(jnp.any(uncertain > 0), uncertain, expected)
    slots_before = jnp.cumsum(certain.astype(jnp.int32))
    slots = jnp.arange(num_draws, dtype=jnp.int32)
    copies = jnp.searchsorted(slots_before, slots, side="right").astype(jnp.int32)
    uniforms = jax.random.uniform(key, (num_draws,), log_weights.dtype)
    return jnp.where(slots < slots_before[-1], copies, ancestors_at(uniforms, cumulative(uncertain)))
