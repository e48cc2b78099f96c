"""Whole trajectories of the surviving particles, by tracing ancestors back from the last step."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from fivo.errors import InputError
from fivo.smc.filter import FilterResult


def lineages(ancestors: Int[Array, "batch time particle"]) -> Int[Array, "batch time particle"]:
    """For every particle of the last step the index of its forebear at each step."""

    def one(ancestors: Int[Array, "time particle"]) -> Int[Array, "time particle"]:
        def step(index: Int[Array, " particle"], row: Int[Array, " particle"]):
            index = row[index]
            return index, index

        last = jnp.arange(ancestors.shape[1], dtype=ancestors.dtype)
        _, earlier = lax.scan(step, last, ancestors[:-1], reverse=True)
        return jnp.concatenate([earlier, last[None]])

    return jax.vmap(one)(ancestors)


def trajectories(result: FilterResult) -> PyTree:
    """z_1:T of the particles alive at the last step, [batch, time, particle, ...], weighted by the last log-weights."""
    if result.latents is None or result.ancestors is None:
        raise InputError(
            "this result holds no latents and ancestors; filter with keep=('log_weights', 'ancestors', 'latents')."
        )
    index = lineages(result.ancestors)

    def trace(leaf: Array) -> Array:
        wide = index.reshape(index.shape + (1,) * (leaf.ndim - index.ndim))
        return jnp.take_along_axis(leaf, wide, axis=2)

    return jax.tree.map(trace, result.latents)


def filtered_mean(result: FilterResult) -> PyTree:
    """The particle estimate of E[z_t | x_1:t], [batch, time, ...]."""
    if result.latents is None or result.log_weights is None:
        raise InputError("this result holds no latents and weights; filter with keep=('log_weights', 'latents').")
    weights: Float[Array, "batch time particle"] = jnp.exp(result.log_weights)
    return jax.tree.map(lambda leaf: jnp.einsum("btn,btn...->bt...", weights, leaf), result.latents)
