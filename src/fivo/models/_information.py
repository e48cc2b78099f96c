"""What later frames say of a latent: the backward information filter of a linear-Gaussian model."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from fivo.models._covariance import Information, posterior
from fivo.models._kalman import following_steps, symmetric


def backward_information(
    a: Float[Array, "state state"],
    scale_tril: Float[Array, "state state"],
    likelihood: Information,
    drift: Float[Array, "time state"],
) -> Information:
    """p(x_t:T | z_t) as a function of z_t, from every step's p(x_t | z_t): the two-filter recursion, from the end.

    Latents move by z_t = A z_{t-1} + drift_t + N(0, L Lᵀ).
    """

    def step(later: Information, inputs: tuple[Information, Array]) -> tuple[Information, Information]:
        now, drift_next = inputs
        ahead = _predicted(scale_tril, later, drift_next)
        made = Information(symmetric(now.precision + a.T @ ahead.precision @ a), now.shift + a.T @ ahead.shift)
        return made, made

    nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), likelihood)
    return lax.scan(step, nothing, (likelihood, following_steps(drift)), reverse=True)[1]


def information_ahead(
    a: Float[Array, "state state"],
    scale_tril: Float[Array, "state state"],
    likelihood: Information,
    drift: Float[Array, "time state"],
) -> Information:
    """p(x_t+1:T | z_t) as a function of z_t for every step; the arguments are those of `backward_information`."""
    later = backward_information(a, scale_tril, likelihood, drift)

    def pulled(later: Information, drift_next: Float[Array, " state"]) -> Information:
        ahead = _predicted(scale_tril, later, drift_next)
        return Information(symmetric(a.T @ ahead.precision @ a), a.T @ ahead.shift)

    return jax.vmap(pulled)(*jax.tree.map(following_steps, (later, drift)))


def _predicted(
    scale_tril: Float[Array, "state state"], later: Information, drift_next: Float[Array, " state"]
) -> Information:
    """p(x_t+1:T | z_t) as a function of A z_t, from that of z_t+1."""
    covariance = posterior(scale_tril, later).covariance
    keep = jnp.eye(covariance.shape[0], dtype=covariance.dtype) - later.precision @ covariance
    precision = keep @ later.precision
    return Information(precision, keep @ later.shift - precision @ drift_next)
