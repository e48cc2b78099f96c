"""The law of the ancestors that a scheme draws, as a differentiable function of the weights.

Score terms of gradients need it. A law has one log-probability per independent draw, so that the draws of multinomial
and stratified resampling are told apart, while those of systematic resampling, which share one uniform, are one draw.
Residual resampling has no usable law: the number of certain copies jumps with the weights, and what jumps has no score.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fivo.errors import InputError
from fivo.resampling.multinomial import multinomial
from fivo.resampling.stratified import stratified
from fivo.resampling.systematic import systematic

Law = Callable[[Float[Array, " particle"], Int[Array, " particle"]], Float[Array, " draw"]]


@runtime_checkable
class Lawful(Protocol):
    """A user's scheme that says how probable the ancestors are which it drew."""

    def log_law(
        self, log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
    ) -> Float[Array, " draw"]: ...


def multinomial_law(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> Float[Array, " particle"]:
    """log w of every ancestor drawn: what the paper's Eq. for ∇FIVO means by log w_t^i."""
    return log_weights[ancestors]


def stratified_law(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> Float[Array, " particle"]:
    """log of the part of its stratum that each ancestor covers."""
    lower, upper = _edges_from_stratum(log_weights, ancestors)
    return _safe_log(jnp.minimum(upper, 1) - jnp.maximum(lower, 0))


def systematic_law(log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]) -> Float[Array, "1"]:
    """log of the length of the offsets that give all these ancestors."""
    lower, upper = _edges_from_stratum(log_weights, ancestors)
    return _safe_log(jnp.min(jnp.minimum(upper, 1)) - jnp.max(jnp.maximum(lower, 0)))[None]


def law_of(scheme: Any) -> Law:
    """The law of a scheme, or a refusal."""
    if isinstance(scheme, Lawful):
        return scheme.log_law
    if scheme not in LAWS:
        name = getattr(scheme, "__name__", type(scheme).__name__)
        raise InputError(
            f"got a score term with {name} resampling, whose ancestors have no law that can be differentiated; use "
            f"{', '.join(law.__name__ for law in LAWS)} resampling or another gradient."
        )
    return LAWS[scheme]


def _edges_from_stratum(
    log_weights: Float[Array, " particle"], ancestors: Int[Array, " particle"]
) -> tuple[Float[Array, " particle"], Float[Array, " particle"]]:
    """The cumulative weights around each ancestor, in units of strata from the start of its own."""
    size = ancestors.shape[0]
    upper = jnp.cumsum(jnp.exp(log_weights))
    lower = jnp.concatenate([jnp.zeros_like(upper[:1]), upper[:-1]])
    stratum = jnp.arange(size, dtype=upper.dtype)
    return size * lower[ancestors] - stratum, size * upper[ancestors] - stratum


def _safe_log(length: Float[Array, "*draw"]) -> Float[Array, "*draw"]:
    """log of a length that rounding may have made zero; a draw of probability zero has no score."""
    return jnp.log(jnp.where(length > 0, length, 1))


LAWS: dict[Any, Law] = {
    multinomial: multinomial_law,
    stratified: stratified_law,
    systematic: systematic_law,
}
