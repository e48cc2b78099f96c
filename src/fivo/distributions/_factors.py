"""Independent entries: distributions of single numbers, whose frames factorise so that entries can be missing.

Log-densities of normals and Bernoullis have their derivatives written down, so that a backward pass is a few products.
Values outside of a distribution's support have probability zero, whatever number type they arrive as.
"""

# numpyro's own distributions override their base class like this.
# pyright: reportIncompatibleMethodOverride=false

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float


class Normal(dist.Normal):
    """numpyro's normal with a cheaper derivative.

    Args:
        loc: means [dim].
        scale: standard deviations [dim], positive.
        validate_args: as for numpyro's distributions.
    """

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        """log N(value; loc, scale²) of every entry.

        Args:
            value: numbers [dim].
            intermediates: not used.

        Returns:
            One log-density per entry [dim].
        """
        return normal_log_prob(jnp.asarray(value), self.loc, self.scale)


class StudentT(dist.StudentT):
    """numpyro's Student t, for real numbers with outliers.

    Args:
        df: degrees of freedom [dim], positive.
        loc: locations [dim].
        scale: scales [dim], positive.
        validate_args: as for numpyro's distributions.
    """


class Bernoulli(dist.BernoulliLogits):
    """numpyro's Bernoulli with a cheaper derivative; anything but 0 and 1 has probability zero.

    Args:
        logits: log-odds of a one [dim].
        validate_args: as for numpyro's distributions.
    """

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        """log p(value) of every entry.

        Args:
            value: zeros and ones [dim], of any number type.
            intermediates: not used.

        Returns:
            One log-probability per entry [dim].
        """
        x = jnp.asarray(value, jnp.result_type(self.logits))
        return bernoulli_log_prob(x, self.logits) + _impossible((x != 0) & (x != 1), x.dtype)


class Symbols(dist.CategoricalLogits):
    """A categorical over the symbols 0 … K - 1, stored as any number type; anything else has probability zero.

    Args:
        logits: log-probabilities up to a constant [dim, symbol].
        validate_args: as for numpyro's distributions.
    """

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, " dim"]:
        """log p(value) of every entry.

        Args:
            value: symbols [dim], of any number type.
            intermediates: not used.

        Returns:
            One log-probability per entry [dim].
        """
        symbol = jnp.asarray(value, jnp.int32)
        known = (symbol >= 0) & (symbol < jnp.shape(self.logits)[-1]) & (symbol == value)
        return jnp.where(known, super().log_prob(jnp.where(known, symbol, 0)), -jnp.inf)


class Poisson(dist.Poisson):
    """numpyro's Poisson for counts stored as any number type; anything else has probability zero.

    Args:
        rate: means [dim], positive.
        is_sparse: as for numpyro's Poisson.
        validate_args: as for numpyro's distributions.
    """

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        """log p(value) of every entry.

        Args:
            value: counts [dim], of any number type.
            intermediates: not used.

        Returns:
            One log-probability per entry [dim].
        """
        x = jnp.asarray(value, jnp.result_type(self.rate))
        count = jnp.maximum(x, 0)
        score = count * jnp.log(self.rate) - self.rate - gammaln(count + 1)
        return score + _impossible(_no_count(x), x.dtype)


class NegativeBinomial(dist.NegativeBinomial2):
    """Counts that vary more than a Poisson's: variance mean + mean² / concentration.

    Args:
        mean: means [dim], positive.
        concentration: how close to a Poisson it is [dim], positive.
        validate_args: as for numpyro's distributions.
    """

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, "*shape"]:
        """log p(value) of every entry.

        Args:
            value: counts [dim], of any number type.
            intermediates: not used.

        Returns:
            One log-probability per entry [dim].
        """
        mean, shape = jnp.asarray(self.mean), jnp.asarray(self.concentration)
        x = jnp.asarray(value, jnp.result_type(mean))
        count = jnp.maximum(x, 0)
        choose = gammaln(count + shape) - gammaln(shape) - gammaln(count + 1)
        score = choose - shape * jnp.log1p(mean / shape) - count * jnp.log1p(shape / mean)
        return score + _impossible(_no_count(x), x.dtype)


def _no_count(x: Array) -> Array:
    return (x < 0) | (x != jnp.floor(x))


def _impossible(flags: Array, dtype: jnp.dtype) -> Array:
    """What is added to a log-probability: -inf where a flag is set. Computed from data alone, so outside of loops."""
    return jnp.where(flags, -jnp.inf, 0).astype(dtype)


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


@jax.custom_jvp
def softplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log(1 + exp(x)), whose derivative 1 - exp(-softplus(x)) needs nothing but its value.

    Args:
        x: numbers of any shape.

    Returns:
        Positive numbers of the same shape.
    """
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = softplus(primals[0])
    return value, tangents[0] * -jnp.expm1(-value)
