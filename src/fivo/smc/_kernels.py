"""Transition kernels for annealing: moves of z that leave a tempered density γ(z) invariant, or make up for it.

Kernels move latents in R^d, as unconstrained pytrees of floats.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo.errors import InputError

LogDensity = Callable[[PyTree], Float[Array, ""]]


class Moved(NamedTuple):
    """Where a kernel went.

    Args:
        latents: z afterwards.
        log_correction: what is added to the log-weight for it.
        accepted: whether it moved.
    """

    latents: PyTree
    log_correction: Float[Array, ""]
    accepted: Bool[Array, ""]


class Kernel(eqx.Module):
    """One transition z -> z' for the unnormalised log-density log γ. Subclass it for a kernel of your own.

    Either γ is invariant and the correction is zero, or z' is a volume-preserving function of z and auxiliary noise u,
    and the correction is log γ(z') r(u') - log γ(z) r(u).
    """

    @abstractmethod
    def __call__(self, key: Key[Array, ""], latents: PyTree, log_density: LogDensity) -> Moved:
        """Move a latent.

        Args:
            key: a random key.
            latents: z.
            log_density: log γ, a function of z.

        Returns:
            Where z goes, and what that does to its weight.
        """


class Copy(Kernel):
    """z' = z. Annealing with it is importance sampling, sharp at the exact posterior."""

    def __call__(self, key: Key[Array, ""], latents: PyTree, log_density: LogDensity) -> Moved:
        return Moved(latents, jnp.zeros(()), jnp.ones((), bool))


class RandomWalk(Kernel):
    """Metropolis with steps N(0, step_size²) in every dimension.

    Reparameterised gradients follow the accepted noise and leave out how the decision to accept depends on the
    parameters: they are biased.

    Args:
        step_size: the standard deviation of a step, positive; it is trained with the bound.
    """

    log_step_size: Float[Array, ""]

    def __init__(self, step_size: float) -> None:
        self.log_step_size = _log_positive(step_size, "step_size")

    def __call__(self, key: Key[Array, ""], latents: PyTree, log_density: LogDensity) -> Moved:
        z, unravel = flattened(latents)
        noise_key, accept_key = jax.random.split(key)
        proposed = z + jnp.exp(self.log_step_size).astype(z.dtype) * jax.random.normal(noise_key, z.shape, z.dtype)
        log_ratio = log_density(unravel(proposed)) - log_density(latents)
        return accept(accept_key, latents, unravel(proposed), log_ratio)


class HMC(Kernel):
    """Hamiltonian Monte Carlo: fresh momentum, leapfrog steps, and the accept step that makes γ invariant.

    Gradients leave out how the decision to accept depends on the parameters: they are biased. `Leapfrog` has none.

    Args:
        step_size: of the leapfrog steps, positive; it is trained with the bound.
        num_steps: leapfrog steps per move.
    """

    log_step_size: Float[Array, ""]
    num_steps: int = eqx.field(static=True)

    def __init__(self, step_size: float, num_steps: int) -> None:
        self.log_step_size = _log_positive(step_size, "step_size")
        self.num_steps = _counted(num_steps)

    def __call__(self, key: Key[Array, ""], latents: PyTree, log_density: LogDensity) -> Moved:
        momentum_key, accept_key = jax.random.split(key)
        proposed, log_ratio = hamiltonian(momentum_key, latents, log_density, self.log_step_size, self.num_steps)
        return accept(accept_key, latents, proposed, log_ratio)


class Leapfrog(Kernel):
    """Leapfrog steps without an accept step; the ratio of densities of (z, momentum) corrects the weight instead.

    The map is deterministic given the momentum and preserves volume, so the estimate stays unbiased (Thin et al. 2021,
    Zhang et al. 2021), and since no decision is left out, its reparameterised gradient is the true one.

    Args:
        step_size: of the leapfrog steps, positive; it is trained with the bound.
        num_steps: leapfrog steps per move.
    """

    log_step_size: Float[Array, ""]
    num_steps: int = eqx.field(static=True)

    def __init__(self, step_size: float, num_steps: int) -> None:
        self.log_step_size = _log_positive(step_size, "step_size")
        self.num_steps = _counted(num_steps)

    def __call__(self, key: Key[Array, ""], latents: PyTree, log_density: LogDensity) -> Moved:
        proposed, log_ratio = hamiltonian(key, latents, log_density, self.log_step_size, self.num_steps)
        return Moved(proposed, log_ratio, jnp.ones((), bool))


def hamiltonian(
    key: Key[Array, ""], latents: PyTree, log_density: LogDensity, log_step_size: Float[Array, ""], num_steps: int
) -> tuple[PyTree, Float[Array, ""]]:
    """(z', log γ(z') N(ρ') - log γ(z) N(ρ)) after leapfrog steps from a fresh momentum ρ ~ N(0, I)."""
    z, unravel = flattened(latents)
    step = jnp.exp(log_step_size).astype(z.dtype)
    momentum = jax.random.normal(key, z.shape, z.dtype)
    value_and_force = jax.value_and_grad(lambda flat: log_density(unravel(flat)))
    before, force = value_and_force(z)

    def leap(carry: tuple, _: None) -> tuple[tuple, None]:
        z, momentum, _, force = carry
        momentum = momentum + 0.5 * step * force
        z = z + step * momentum
        value, force = value_and_force(z)
        return (z, momentum + 0.5 * step * force, value, force), None

    start = (z, momentum, before, force)
    moved, momentum_after, after, _ = lax.scan(leap, start, None, length=num_steps)[0]
    kinetic = 0.5 * (jnp.sum(momentum**2) - jnp.sum(momentum_after**2))
    return unravel(moved), after - before + kinetic


def accept(key: Key[Array, ""], old: PyTree, new: PyTree, log_ratio: Float[Array, ""]) -> Moved:
    """The Metropolis step; a move to where the density is not a number is refused."""
    accepted = jnp.log(jax.random.uniform(key, (), log_ratio.dtype)) < log_ratio
    latents = jax.tree.map(lambda moved, stayed: jnp.where(accepted, moved, stayed), new, old)
    return Moved(latents, jnp.zeros_like(log_ratio), accepted)


def flattened(latents: PyTree) -> tuple[Float[Array, " dim"], Callable[[Float[Array, " dim"]], PyTree]]:
    """z as one vector, and the way back."""
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(latents)):
        raise InputError(
            "this model's latents are not real numbers, and only the kernel Copy can move them; use Copy()."
        )
    return ravel_pytree(latents)


def _log_positive(value: float, name: str) -> Float[Array, ""]:
    if not isinstance(value, Tracer) and not value > 0:
        raise InputError(f"{name} must be a positive number, got {value!r}.")
    return jnp.log(jnp.asarray(value, float))


def _counted(num_steps: int) -> int:
    if not isinstance(num_steps, int) or num_steps < 1:
        raise InputError(f"num_steps must be a positive integer, got {num_steps!r}.")
    return num_steps
