"""Whole trajectories of the surviving particles, by tracing ancestors back from the last step."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.smc._filter import sequence_keys
from fivo.smc._result import FilterResult


def lineages(ancestors: Int[Array, "batch time particle"]) -> Int[Array, "batch time particle"]:
    """For every particle of the last step the index of its forebear at each step.

    Args:
        ancestors: a filter's record of that name.

    Returns:
        The indices [batch, time, particle].
    """

    def one(ancestors: Int[Array, "time particle"]) -> Int[Array, "time particle"]:
        def step(index: Int[Array, " particle"], row: Int[Array, " particle"]):
            index = row[index]
            return index, index

        last = jnp.arange(ancestors.shape[1], dtype=ancestors.dtype)
        _, earlier = lax.scan(step, last, ancestors[:-1], reverse=True)
        return jnp.concatenate([earlier, last[None]])

    return jax.vmap(one)(ancestors)


def trajectories(result: FilterResult) -> PyTree:
    """z_1:T of the particles alive at the last step, [batch, time, particle, ...], weighted by the last log-weights.

    Args:
        result: of a filter that kept "ancestors" and "latents".

    Returns:
        The trajectories [batch, time, particle, ...].
    """
    result.require("ancestors", "latents")
    return _traced(result, lineages(result.record("ancestors")))


def draw_trajectory(result: FilterResult, *, key: Key[Array, "*batch"]) -> PyTree:
    """One trajectory z_1:T per sequence, [batch, time, ...], drawn by the last weights of a filter's particles.

    Args:
        result: of a filter that kept "log_weights", "ancestors" and "latents".
        key: one random key, or one for each sequence.

    Returns:
        The trajectories [batch, time, ...].
    """
    result.require("log_weights", "ancestors", "latents")
    log_weights, ancestors = result.record("log_weights"), result.record("ancestors")
    keys = sequence_keys(key, ancestors.shape[0])
    chosen = jax.vmap(jax.random.categorical)(keys, log_weights[:, -1])
    index = jnp.take_along_axis(lineages(ancestors), chosen[:, None, None], axis=2)
    return jax.tree.map(lambda leaf: leaf[:, :, 0], _traced(result, index))


def filtered_mean(result: FilterResult) -> PyTree:
    """The particle estimate of E[z_t | x_1:t], [batch, time, ...].

    Args:
        result: of a filter that kept "log_weights" and "latents".

    Returns:
        The estimate [batch, time, ...].
    """
    result.require("log_weights", "latents")
    weights: Float[Array, "batch time particle"] = jnp.exp(result.filter_weights)
    return jax.tree.map(lambda leaf: jnp.einsum("btn,btn...->bt...", weights, leaf), result.record("latents"))


def _traced(result: FilterResult, index: Int[Array, "batch time draw"]) -> PyTree:
    """The latents of the particles with these indices."""

    def trace(leaf: Array) -> Array:
        wide = index.reshape(index.shape + (1,) * (leaf.ndim - index.ndim))
        return jnp.take_along_axis(leaf, wide, axis=2)

    return jax.tree.map(trace, result.record("latents"))
