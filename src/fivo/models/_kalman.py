"""The Kalman filter and the Rauch–Tung–Striebel smoother: exact oracles for linear-Gaussian models."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Shaped

from fivo.distributions import Gaussian, masked_covariance
from fivo.errors import InputError


class LinearGaussianParameters(NamedTuple):
    """z_1 ~ N(m, P), z_t = A z_{t-1} + N(0, Q), x_t = C z_t + N(0, R)."""

    transition_matrix: Float[Array, "state state"]
    transition_covariance: Float[Array, "state state"]
    emission_matrix: Float[Array, "dim state"]
    emission_covariance: Float[Array, "dim dim"]
    initial_mean: Float[Array, " state"]
    initial_covariance: Float[Array, "state state"]


def check_parameters(given: LinearGaussianParameters) -> None:
    """Refuse shapes that do not go together, and covariances that are none; traced values are not looked at."""
    dim, state = np.shape(given.emission_matrix) if np.ndim(given.emission_matrix) == 2 else (0, 0)
    shapes = [(state, state), (state, state), (dim, state), (dim, dim), (state,), (state, state)]
    for name, value, shape in zip(given._fields, given, shapes, strict=True):
        if np.shape(value) != shape or 0 in shape:
            raise InputError(
                f"{name} must have shape {shape}, as emission_matrix [dim, state] has shape "
                f"{np.shape(given.emission_matrix)}, got {np.shape(value)}."
            )
        if isinstance(value, Tracer):
            continue
        if not np.isfinite(np.asarray(value, float)).all():
            raise InputError(f"{name} holds NaN or infinite values; give finite numbers.")
        if "covariance" in name:
            _check_covariance(name, np.asarray(value, float))


def _check_covariance(name: str, value: np.ndarray) -> None:
    symmetric_enough = np.allclose(value, value.T, rtol=1e-5, atol=0)
    if not symmetric_enough or np.linalg.eigvalsh(value).min() <= 0:
        reason = "not symmetric" if not symmetric_enough else "not positive definite"
        raise InputError(f"{name} is {reason}; give a symmetric matrix with positive eigenvalues.")


class Moments(NamedTuple):
    """Means and covariances of the latents, step by step.

    Args:
        means: [time, state].
        covariances: [time, state, state].
    """

    means: Float[Array, "time state"]
    covariances: Float[Array, "time state state"]


class KalmanState(NamedTuple):
    """What the exact filter knows between two frames: p(z_t | x_1:t-1), except for what the inputs of step t add.

    Args:
        mean: [state].
        covariance: [state, state].
        step: how many frames there were.
    """

    mean: Float[Array, " state"]
    covariance: Float[Array, "state state"]
    step: Int[Array, ""]


class KalmanStep(NamedTuple):
    """What the exact filter says of one frame."""

    log_increment: Float[Array, ""]
    """log p(x_t | x_1:t-1)."""
    expected: Float[Array, " dim"]
    """The mean of p(x_t | x_1:t-1)."""
    spread: Float[Array, "dim dim"]
    """The covariance of the same."""
    distance: Float[Array, ""]
    """The squared Mahalanobis distance of the observed entries from what was expected: χ² with as many degrees."""
    mean: Float[Array, " state"]
    """The mean of p(z_t | x_1:t)."""
    covariance: Float[Array, "state state"]
    """The covariance of the same."""


def kalman_update(
    parameters: LinearGaussianParameters,
    mean: Float[Array, " state"],
    covariance: Float[Array, "state state"],
    x: Float[Array, " dim"],
    seen: Bool[Array, " dim"],
) -> KalmanStep:
    """Condition N(mean, covariance) of z_t on the entries of x_t that were seen."""
    c, r = parameters.emission_matrix, parameters.emission_covariance
    expected, spread = c @ mean, c @ covariance @ c.T + r
    observe = jnp.where(seen[:, None], c, 0)
    residual = jnp.where(seen, x - expected, 0)
    marginal = Gaussian(jnp.zeros_like(x), jnp.linalg.cholesky(masked_covariance(spread, seen)))
    missing = jnp.sum(~seen).astype(x.dtype)
    increment = marginal.log_prob(residual) + missing * 0.5 * jnp.log(2 * jnp.pi).astype(x.dtype)
    half_gain = marginal.whiten @ observe @ covariance
    white = marginal.whiten @ residual
    return KalmanStep(
        log_increment=increment,
        expected=expected,
        spread=spread,
        distance=jnp.sum(white**2),
        mean=mean + half_gain.T @ white,
        covariance=symmetric(covariance - half_gain.T @ half_gain),
    )


def kalman_filter(
    parameters: LinearGaussianParameters,
    observations: Float[Array, "time dim"],
    mask: Bool[Array, "time dim"] | None,
    length: Int[Array, ""],
    drift: Float[Array, "time state"],
) -> tuple[Float[Array, " time"], Moments]:
    """log p(x_t | x_1:t-1), zero past the end, and the moments of p(z_t | x_1:t).

    `drift[t]` is added to the mean of z_t given z_{t-1}, for all steps but the first.
    """
    a, q, _, _, m, p = parameters

    def step(carry, inputs):
        mean, covariance = carry
        x, mask_t, active, drift_next = inputs
        seen = jnp.ones(x.shape, bool) if mask_t is None else mask_t
        made = kalman_update(parameters, mean, covariance, x, seen & active)
        following = (a @ made.mean + drift_next, symmetric(a @ made.covariance @ a.T + q))
        return following, (jnp.where(active, made.log_increment, 0), Moments(made.mean, made.covariance))

    active = jnp.arange(observations.shape[0]) < length
    # Symmetric, so that the gradient with respect to P is.
    return lax.scan(step, (m, symmetric(p)), (observations, mask, active, following_steps(drift)))[1]


def kalman_smoother(
    parameters: LinearGaussianParameters, filtered: Moments, length: Int[Array, ""], drift: Float[Array, "time state"]
) -> Moments:
    """The moments of p(z_t | x_1:T) from those of p(z_t | x_1:t)."""
    a, q = parameters.transition_matrix, parameters.transition_covariance

    def step(carry, inputs):
        next_mean, next_covariance = carry
        mean, covariance, last, drift_next = inputs
        predicted = symmetric(a @ covariance @ a.T + q)
        gain = jnp.linalg.solve(predicted, a @ covariance).T
        smoothed_mean = mean + gain @ (next_mean - (a @ mean + drift_next))
        smoothed_covariance = symmetric(covariance + gain @ (next_covariance - predicted) @ gain.T)
        smoothed = (jnp.where(last, mean, smoothed_mean), jnp.where(last, covariance, smoothed_covariance))
        return smoothed, Moments(*smoothed)

    last = jnp.arange(filtered.means.shape[0]) >= length - 1
    start = (filtered.means[-1], filtered.covariances[-1])
    return lax.scan(step, start, (*filtered, last, following_steps(drift)), reverse=True)[1]


def following_steps(values: Shaped[Array, "time *rest"]) -> Shaped[Array, "time *rest"]:
    """Every step's successor's value; zero at the end."""
    return jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])


def symmetric(matrix: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
    """Wipes out the asymmetry that rounding leaves."""
    return 0.5 * (matrix + matrix.T)
