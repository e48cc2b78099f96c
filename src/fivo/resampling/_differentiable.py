"""Resampling that derivatives pass through."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.errors import InputError


class Resampled(NamedTuple):
    """Particles after resampling.

    Args:
        ancestors: the particle that each new one mostly continues [particle].
        state: the new states [particle, ...].
        log_weights: the new log-weights [particle].
    """

    ancestors: Int[Array, " particle"]
    state: PyTree
    log_weights: Float[Array, " particle"]


class DifferentiableScheme(eqx.Module):
    """Moves weighted particles instead of naming ancestors. Subclass it for a scheme of your own."""

    loses_bound: ClassVar[str | None] = None
    """Why log p̂ is not a lower bound of log p(x) with it; None if it is one."""

    def check(self, num_particles: int) -> None:
        """Refuse a number of particles that the scheme cannot serve; by default any number will do.

        Args:
            num_particles: N.
        """

    @abstractmethod
    def resample(self, key: Key[Array, ""], log_weights: Float[Array, " particle"], state: PyTree) -> Resampled:
        """Move the particles.

        Args:
            key: a random key.
            log_weights: normalised log-weights [particle].
            state: the particles' states [particle, ...].

        Returns:
            The particles that the next step starts from.
        """


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
                f"{name} resampling must have states of real numbers, which it averages, but this model's hold whole "
                "numbers; use resampling='multinomial' with gradient='score', or 'soft'."
            )
    return jax.tree.map(lambda leaf: jnp.tensordot(matrix.astype(leaf.dtype), leaf, axes=1), state)


def check_quadratic(num_particles: int, limit: int, name: str) -> None:
    """Refuse what a matrix over all pairs of particles would take too long for."""
    if num_particles > limit:
        raise InputError(
            f"{name} resampling must have at most {limit} particles, since its work grows with their square, got "
            f"{num_particles}; use fewer particles, or multinomial resampling."
        )
