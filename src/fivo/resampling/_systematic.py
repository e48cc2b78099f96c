"""One uniform draw shared by N equal strata (Carpenter, Clifford and Fearnhead 1999)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.resampling._stratified import at_points, at_strata, edges_from_stratum, reference_point, safe_log


def systematic(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " {num_draws}"]:
    """Ancestors at the points (i + u) / N with one uniform u.

    Args:
        key: a random key.
        log_weights: log-weights of the particles [particle], up to a constant.
        num_draws: N.

    Returns:
        The ancestors [num_draws], in ascending order.
    """
    offset = jax.random.uniform(key, (), log_weights.dtype)
    return at_strata(jnp.broadcast_to(offset, (num_draws,)), log_weights)


def conditional_systematic(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, " particle"], Int[Array, ""]]:
    """The reference's point is uniform on its share of [0, 1) and thereby fixes the offset of all."""
    slot, offset = reference_point(key, log_weights, reference)
    return at_points(jnp.broadcast_to(offset, log_weights.shape), log_weights, reference, slot), slot


def systematic_law(log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]) -> Float[Array, "1"]:
    """log of the length of the offsets that give all these ancestors."""
    lower, upper = edges_from_stratum(log_weights, ancestors)
    return safe_log(jnp.min(jnp.minimum(upper, 1)) - jnp.max(jnp.maximum(lower, 0)))[None]
