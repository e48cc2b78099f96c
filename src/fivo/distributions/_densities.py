"""Draws of latents, and log-probabilities of latents and of partly missing observations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from fivo.distributions._gaussian import Gaussian
from fivo.errors import InputError


def weight_dtype(model: eqx.Module) -> jnp.dtype:
    """The float type of a model's parameters, in which latents and weights are kept.

    Args:
        model: the model, or any tree of arrays.

    Returns:
        The common type of its float arrays; JAX's default float type if it has none.
    """
    leaves = [leaf for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)]
    return jnp.result_type(*leaves) if leaves else jnp.result_type(float)


def sample(distribution: dist.Distribution, key: Key[Array, ""], dtype: jnp.dtype) -> PyTree:
    """Draw once, with floats of the given type. (numpyro draws in JAX's default type, whatever its parameters have.)

    Args:
        distribution: what to draw from.
        key: a random key.
        dtype: the float type of the draw; whole numbers keep theirs.

    Returns:
        The draw: an array, or for a `Joint` a dictionary of arrays.
    """
    drawn = distribution.sample(key)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, drawn)


def log_prob(distribution: dist.Distribution, value: PyTree) -> Float[Array, ""]:
    """The log-density of one latent, summed over its independent entries.

    Args:
        distribution: its distribution.
        value: the latent.

    Returns:
        log p(value), a scalar.
    """
    return jnp.sum(distribution.log_prob(value))


def observation_log_prob(
    emission: dist.Distribution, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
) -> Float[Array, ""]:
    """log g_t(x_t | z_t) of the observed entries of a frame.

    Factorised emissions leave missing entries out, and Gaussians marginalise them exactly. Any other joint emission can
    only miss whole frames.

    Args:
        emission: g_t, with one entry per entry of the frame.
        x: the frame [dim].
        mask: [dim], true where an entry was observed; None where all were.

    Returns:
        The log-density, a scalar; zero for a frame that is missing altogether.
    """
    shape = emission.batch_shape + emission.event_shape
    if shape != x.shape:
        raise InputError(
            f"a frame has shape {x.shape} where the model emits {shape}; make the model emit one number per entry."
        )
    if mask is None:
        return jnp.sum(emission.log_prob(x))
    if emission.event_dim == 0:
        return jnp.sum(jnp.where(mask, emission.log_prob(x), 0))
    if isinstance(emission, dist.MultivariateNormal):
        emission = Gaussian(emission.loc, emission.scale_tril)
    if isinstance(emission, Gaussian):
        return emission.marginal_log_prob(x, mask)
    partial = jnp.any(mask) & ~jnp.all(mask)
    x = eqx.error_if(
        x,
        partial,
        f"some entries of a frame are missing, but the emission {type(emission).__name__} does not factorise over "
        "entries; mask whole frames or emit a factorised distribution.",
    )
    return jnp.where(jnp.all(mask), jnp.sum(emission.log_prob(x)), 0)
