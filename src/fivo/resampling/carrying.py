"""Resampling that derivatives pass through."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.errors import InputError


class Carried(NamedTuple):
    """Particles after resampling, and which particle each of them mostly continues."""

    ancestors: Int[Array, " particle"]
    state: PyTree
    log_weights: Float[Array, " particle"]


@runtime_checkable
class CarryingScheme(Protocol):
    """Moves weighted particles instead of naming ancestors."""

    def check(self, num_particles: int) -> None:
        """Refuse a number of particles that it cannot serve."""
        ...

    def carry(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Carried:
        """The particles that follow."""
        ...


def draw_ancestors(
    scheme: Callable, key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
) -> Int[Array, " draw"]:
    """The ancestors that a scheme draws; those of a user's own function are checked."""
    ancestors = scheme(key, log_weights, num_draws)
    if getattr(scheme, "__module__", "").startswith("fivo.resampling."):
        return ancestors
    kind = getattr(ancestors, "dtype", None)
    if kind is None or ancestors.shape != (num_draws,) or not jnp.issubdtype(kind, jnp.integer):
        raise InputError(
            f"a resampling function must return {num_draws} whole numbers, got "
            f"{'nothing' if kind is None else f'{kind} of shape {ancestors.shape}'}."
        )
    outside = jnp.any((ancestors < 0) | (ancestors >= log_weights.shape[0]))
    sentence = f"A resampling function must return ancestors from 0 to {log_weights.shape[0] - 1}, but did not."
    return eqx.error_if(ancestors, outside, sentence).astype(jnp.int32)


def uniform_weights(log_weights: Float[Array, " particle"]) -> Float[Array, " particle"]:
    """log 1/N of every particle."""
    return jnp.full_like(log_weights, -jnp.log(log_weights.shape[-1]))


def pick(state: PyTree, ancestors: Int[Array, " particle"]) -> PyTree:
    """The states of the ancestors."""
    return jax.tree.map(lambda leaf: leaf[ancestors], state)


def mix(state: PyTree, matrix: Float[Array, "particle particle"], name: str) -> PyTree:
    """Every row's weighted average of the states."""
    for leaf in jax.tree.leaves(state):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise InputError(
                f"{name} resampling averages states, but this model's hold whole numbers, which have no average; use "
                "resampling='multinomial' with gradient='score', or 'soft'."
            )
    return jax.tree.map(lambda leaf: jnp.tensordot(matrix.astype(leaf.dtype), leaf, axes=1), state)


def check_quadratic(num_particles: int, limit: int, name: str) -> None:
    """Refuse what a matrix over all pairs of particles would take too long for."""
    if num_particles > limit:
        raise InputError(
            f"got {num_particles} particles where {name} resampling takes at most {limit}: its work at every step "
            "grows with their square; use fewer particles, or multinomial resampling."
        )
