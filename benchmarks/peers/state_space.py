"""The two state-space models in JAX for one particle, as cuthbert and a plain scan take them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from benchmarks.problems import linear_gaussian, stochastic_volatility

Parameters = dict[str, Any]


class StateSpaceModel(NamedTuple):
    """The first latent's mean and scale, the transition's, and the emission, of one particle and a shared scale."""

    first: tuple[jax.Array, jax.Array]
    transition: Callable[[jax.Array], jax.Array]
    scale: jax.Array
    log_emission: Callable[[jax.Array, jax.Array], jax.Array]


def problem(model: str, steps: int) -> tuple[Parameters, jax.Array]:
    """Free parameters and observations: the covariances' names are in capitals."""
    if model == "linear-Gaussian":
        p, x = linear_gaussian(steps)
    else:
        q, x = stochastic_volatility(steps)
        p = {"mu": q["mu"], "persistence": jnp.arctanh(q["phi"]), "log_scale": jnp.log(q["sigma"])}
    return {name: jnp.asarray(value, jnp.float32) for name, value in p.items()}, jnp.asarray(x, jnp.float32)


def build(p: Parameters) -> StateSpaceModel:
    """The model of these parameters; factors of covariances are made once."""
    if "mu" in p:
        mu, phi, sigma = p["mu"], jnp.tanh(p["persistence"]), jnp.exp(p["log_scale"])
        return StateSpaceModel(
            (mu, sigma / jnp.sqrt(1 - phi**2)),
            lambda z: mu + phi * (z - mu),
            sigma,
            lambda z, x: -0.5 * (x**2 * jnp.exp(-z) + z + jnp.log(2 * jnp.pi)),
        )
    observation = jnp.linalg.cholesky(p["R"])
    whiten = jnp.linalg.inv(observation)
    constant = jnp.log(jnp.diagonal(observation)).sum() + jnp.log(2 * jnp.pi)

    def log_emission(z: jax.Array, x: jax.Array) -> jax.Array:
        deviation = whiten @ (x - p["C"] @ z)
        return -0.5 * deviation @ deviation - constant

    return StateSpaceModel(
        (p["m0"], jnp.linalg.cholesky(p["P0"])), lambda z: p["A"] @ z, jnp.linalg.cholesky(p["Q"]), log_emission
    )


def draw(key: jax.Array, mean: jax.Array, scale: jax.Array) -> jax.Array:
    """A normal of one particle."""
    noise = jax.random.normal(key, mean.shape)
    return mean + (scale @ noise if mean.ndim else scale * noise)


def with_norms(
    log_evidence: Callable[[Parameters, jax.Array], jax.Array],
) -> Callable[[Parameters, jax.Array], jax.Array]:
    """The value and the norms of its gradient, that of covariances apart."""

    def run(p: Parameters, key: jax.Array) -> jax.Array:
        value, slope = jax.value_and_grad(log_evidence)(p, key)
        covariances = {"Q", "R", "P0"}
        rest = [jnp.sum(leaf**2) for name, leaf in slope.items() if name in covariances]
        free = [jnp.sum(leaf**2) for name, leaf in slope.items() if name not in covariances]
        return jnp.stack([value, jnp.sqrt(sum(free, jnp.zeros(()))), jnp.sqrt(sum(rest, jnp.zeros(())))])

    return run
