"""Ancestors of particles that are spread over devices: each device draws those of its own slots."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from fivo.resampling._inverse_cdf import BLOCK, SMALL, ancestors_of_counts, between, cumulative, sums_in_blocks
from fivo.resampling._schemes import Scheme, draw_ancestors
from fivo.resampling._stratified import points_below, stratified
from fivo.resampling._systematic import systematic


def draw_own_ancestors(
    scheme: Scheme, key: Key[Array, ""], log_weights: Float[Array, " particle"], axis: str, devices: int
) -> Int[Array, " particle"]:
    """A device's share of the ancestors that the scheme draws by the weights of all devices.

    For systematic and stratified draws, each device sums the weights of its own particles and counts the points below
    them; others collect all weights and draw all ancestors on every device. Call it inside of `jax.shard_map`.

    Args:
        scheme: a function (key, log_weights, num_draws).
        key: the random key of one device.
        log_weights: log-weights of this device's particles [particle], normalised over all devices.
        axis: the name of the mesh's axis.
        devices: how many devices there are.

    Returns:
        Ancestors of this device's slots [particle], counted over all devices.
    """
    count, dtype = log_weights.shape[0], log_weights.dtype
    num_draws, first = count * devices, lax.axis_index(axis) * count
    if scheme not in (systematic, stratified) or num_draws <= SMALL or count % BLOCK:
        drawn = draw_ancestors(scheme, key, lax.all_gather(log_weights, axis, tiled=True), num_draws)
        return lax.dynamic_slice(drawn, (first,), (count,))
    # As the schemes have them.
    offsets = jax.random.uniform(key, () if scheme is systematic else (num_draws,), dtype)
    edges, total = _cumulative(jnp.exp(log_weights), axis)
    below = points_below(jnp.broadcast_to(offsets, (num_draws,)), edges, total)
    return ancestors_of_counts(lax.all_gather(below, axis, tiled=True), count, dtype, first)


def _cumulative(weights: Float[Array, " particle"], axis: str) -> tuple[Float[Array, " particle"], Float[Array, ""]]:
    """This device's part of the cumulative weights of all devices, and their total."""
    within = sums_in_blocks(weights)
    ends = cumulative(lax.all_gather(within[:, -1], axis, tiled=True))
    starts = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    size = within.shape[0]
    own = (lax.axis_index(axis) * size,)
    return between(within, *(lax.dynamic_slice(sums, own, (size,)) for sums in (starts, ends))), ends[-1]
