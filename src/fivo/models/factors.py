"""Independent normals and Bernoullis whose derivatives are written down, so that a backward pass is a few products."""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from fivo.models.layers import softplus


class Normal(dist.Normal):
    """numpyro's normal."""

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        return normal_log_prob(jnp.asarray(value), self.loc, self.scale)


class Bernoulli(dist.BernoulliLogits):
    """numpyro's Bernoulli."""

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        x = jnp.asarray(value, jnp.result_type(self.logits))
        # The formula is linear in x; anything but 0 and 1 has probability zero.
        return bernoulli_log_prob(x, self.logits) + jnp.where((x == 0) | (x == 1), 0, -jnp.inf).astype(x.dtype)


@jax.custom_jvp
def normal_log_prob(z: Array, loc: Array, scale: Array) -> Array:
    """log N(z; loc, scale²)."""
    white = (z - loc) / scale
    return -0.5 * white**2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi).astype(white.dtype)


@normal_log_prob.defjvp
def _normal_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (z, loc, scale), (dz, dloc, dscale) = primals, tangents
    precision_root = 1 / scale
    white = (z - loc) * precision_root
    slope = (dloc - dz) * (white * precision_root) + dscale * ((white**2 - 1) * precision_root)
    return normal_log_prob(z, loc, scale), slope


@jax.custom_jvp
def bernoulli_log_prob(x: Array, logits: Array) -> Array:
    """x log σ(logits) + (1 - x) log σ(-logits)."""
    return x * logits - softplus(logits)


@bernoulli_log_prob.defjvp
def _bernoulli_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (x, logits), (dx, dlogits) = primals, tangents
    return bernoulli_log_prob(x, logits), dx * logits + dlogits * (x - jax.nn.sigmoid(logits))
