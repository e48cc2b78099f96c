"""Resampling given that one particle survives: the law of the ancestors in conditional SMC (Algorithm 2 of the paper).

A scheme draws (a_1, …, a_N). Given that the reference particle k is continued, the pair of the ancestors and of the
slot j that continues it has a law proportional to the scheme's own, on all pairs with a_j = k. Keeping a slot aside and
resampling the others as usual has that law for independent draws only; schemes whose draws depend on each other need
their own conditional forms (Chopin and Singh 2015).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from fivo.errors import InputError
from fivo.resampling.inverse_cdf import ancestors_at, cumulative_weights
from fivo.resampling.multinomial import multinomial
from fivo.resampling.stratified import stratified
from fivo.resampling.systematic import systematic

ConditionalScheme = Callable[
    [Key[Array, ""], Float[Array, " particle"], Int[Array, ""]], tuple[Int[Array, " particle"], Int[Array, ""]]
]
"""(ancestors, the slot that continues the reference) from a key, log-weights and the reference's index."""


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


def conditional_stratified(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, " particle"], Int[Array, ""]]:
    """The reference's point is uniform on its share of [0, 1) and thereby fixes its stratum; the others are free."""
    point_key, offset_key = jax.random.split(key)
    offsets = jax.random.uniform(offset_key, log_weights.shape, log_weights.dtype)
    slot, offset = _reference_point(point_key, log_weights, reference)
    return _at_points(offsets.at[slot].set(offset), log_weights, reference, slot), slot


def conditional_systematic(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, " particle"], Int[Array, ""]]:
    """The reference's point is uniform on its share of [0, 1) and thereby fixes the offset of all."""
    slot, offset = _reference_point(key, log_weights, reference)
    return _at_points(jnp.broadcast_to(offset, log_weights.shape), log_weights, reference, slot), slot


def _reference_point(
    key: Key[Array, ""], log_weights: Float[Array, " particle"], reference: Int[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """(stratum, offset in it) of a uniform point of the reference's share."""
    edges = cumulative_weights(log_weights)
    low = jnp.where(reference > 0, edges[reference - 1], 0)
    point = low + (edges[reference] - low) * jax.random.uniform(key, (), log_weights.dtype)
    place = log_weights.shape[0] * (point / edges[-1])
    slot = jnp.minimum(jnp.floor(place).astype(jnp.int32), log_weights.shape[0] - 1)
    return slot, jnp.clip(place - slot, 0, 1)


def _at_points(
    offsets: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    reference: Int[Array, ""],
    slot: Int[Array, ""],
) -> Int[Array, " particle"]:
    size = log_weights.shape[0]
    points = (jnp.arange(size, dtype=offsets.dtype) + offsets) / size
    drawn = ancestors_at(points, cumulative_weights(log_weights))
    # Rounding must not give the reference's own point to a neighbour.
    return drawn.at[slot].set(reference.astype(drawn.dtype))


CONDITIONAL: dict[str, ConditionalScheme] = {
    "multinomial": conditional_multinomial,
    "stratified": conditional_stratified,
    "systematic": conditional_systematic,
}
_BY_FUNCTION = {multinomial: "multinomial", stratified: "stratified", systematic: "systematic"}


def get_conditional_scheme(resampling: object) -> ConditionalScheme:
    """The conditional form of a scheme, by its name or function."""
    name = resampling if isinstance(resampling, str) else _BY_FUNCTION.get(resampling)  # type: ignore[arg-type]
    if name not in CONDITIONAL:
        raise InputError(
            f"got resampling={resampling!r}, which has no conditional form here; use one of {', '.join(CONDITIONAL)}."
        )
    return CONDITIONAL[name]
