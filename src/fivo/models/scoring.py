"""Log-probabilities of latents and of partly missing observations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from fivo.models.gaussian import Gaussian


def log_prob(distribution: dist.Distribution, value: PyTree) -> Float[Array, ""]:
    """The log-density of one latent, summed over its independent entries."""
    return jnp.sum(distribution.log_prob(value))


def observation_log_prob(
    emission: dist.Distribution, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
) -> Float[Array, ""]:
    """log g_t(x_t | z_t) of the observed entries of a frame.

    Factorised emissions leave missing entries out, Gaussians marginalise them exactly; any other joint emission
    can only miss a whole frame.
    """
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
    return jnp.where(jnp.all(mask), jax.numpy.sum(emission.log_prob(x)), 0)
