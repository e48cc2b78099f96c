"""Arithmetic of log-weights: select, never multiply by zero, so that -inf has a defined answer.

NaN is not -inf: a NaN weight is a bug of a model and stays visible.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

__all__ = ["effective_sample_size", "log_mean_exp", "log_sum_exp", "normalize"]


def log_sum_exp(log_weights: Float[Array, "*shape particle"]) -> Float[Array, "*shape"]:
    """log Σ_i exp(log w_i) over the last axis; -inf, with zero gradient, where every weight is -inf.

    Args:
        log_weights: log-weights [..., particle].

    Returns:
        The log of their sum [...].
    """
    top = lax.stop_gradient(jnp.max(log_weights, axis=-1, keepdims=True))
    top = jnp.where(jnp.isneginf(top), 0, top)
    total = jnp.sum(jnp.exp(log_weights - top), axis=-1)
    alive = total != 0
    return jnp.where(alive, jnp.log(jnp.where(alive, total, 1)), -jnp.inf) + top[..., 0]


def log_mean_exp(log_weights: Float[Array, "*shape particle"]) -> Float[Array, "*shape"]:
    """log of the average weight over the last axis, log (1/N) Σ_i w_i.

    Args:
        log_weights: log-weights [..., particle].

    Returns:
        The log of their mean [...]; -inf where every weight is -inf.
    """
    return log_sum_exp(log_weights) - jnp.log(jnp.asarray(log_weights.shape[-1], log_weights.dtype))


def normalize(
    log_weights: Float[Array, "*shape particle"],
) -> tuple[Float[Array, "*shape particle"], Float[Array, "*shape"]]:
    """Divide weights by their sum, in log space.

    Args:
        log_weights: log-weights [..., particle], up to a constant.

    Returns:
        Log-weights that sum to one [..., particle], uniform where every particle is dead, and the log of the sum that
        they were divided by [...], which is -inf there.
    """
    log_total = log_sum_exp(log_weights)
    dead = jnp.isneginf(log_total)[..., None]
    uniform = -jnp.log(jnp.asarray(log_weights.shape[-1], log_weights.dtype))
    shifted = jnp.where(dead, 0, log_weights) - jnp.where(dead, 0, log_total[..., None])
    return jnp.where(dead, uniform, shifted), log_total


def effective_sample_size(log_weights: Float[Array, "*shape particle"]) -> Float[Array, "*shape"]:
    """ESS = 1 / Σ_i w_i² of normalised weights (Section 3 of the paper), from 1 to N.

    Args:
        log_weights: *normalised* log-weights [..., particle], as `normalize` returns them.

    Returns:
        The effective sample size [...].
    """
    return 1 / jnp.sum(jnp.exp(2 * log_weights), axis=-1)
