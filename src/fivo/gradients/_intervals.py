"""The intervals between resamplings, from a filter's records."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


def interval_ends(resampled: Bool[Array, "batch time"], lengths: Int[Array, " batch"]) -> Int[Array, "batch time"]:
    """For every step the last one of its interval: the next that is followed by a resampling, or the sequence's
    last.
    """
    last = jnp.maximum(lengths - 1, 0)[:, None]
    steps = jnp.broadcast_to(jnp.arange(resampled.shape[1], dtype=lengths.dtype), resampled.shape)
    candidates = jnp.where(resampled, jnp.minimum(steps, last), last)
    return lax.cummin(candidates, axis=1, reverse=True)


def from_here(values: Float[Array, "batch time"]) -> Float[Array, "batch time"]:
    """Σ over this step and all later ones."""
    return lax.cumsum(values, axis=1, reverse=True)


def next_step(values: Float[Array, "batch time *rest"]) -> Float[Array, "batch time *rest"]:
    """Every step's successor's value; zero behind the end."""
    return jnp.concatenate([values[:, 1:], jnp.zeros_like(values[:, :1])], axis=1)
