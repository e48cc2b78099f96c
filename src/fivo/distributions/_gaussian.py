"""A multivariate normal that keeps the inverse of its scale, so that scoring a particle is one small product."""

# numpyro's own distributions override their base class like this.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false, reportAssignmentType=false

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Key
from numpyro.distributions import constraints


class Gaussian(dist.Distribution):
    """N(loc, L Lᵀ), which keeps L⁻¹ so that scoring a particle is one small product.

    Args:
        loc: the mean [dim].
        scale_tril: a lower-triangular L [dim, dim]; the signs of its diagonal do not matter.
        whiten: L⁻¹ [dim, dim], where it is known; computed otherwise.
        validate_args: as for numpyro's distributions.
    """

    support = constraints.real_vector
    reparametrized_params: ClassVar = ["loc", "scale_tril", "whiten"]
    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "scale_tril": constraints.real_matrix,
        "whiten": constraints.real_matrix,
    }

    def __init__(
        self,
        loc: Float[Array, " dim"],
        scale_tril: Float[Array, "dim dim"],
        whiten: Float[Array, "dim dim"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.loc = loc
        self.scale_tril = scale_tril
        self.whiten = inverse_tril(scale_tril) if whiten is None else whiten
        super().__init__((), jnp.shape(loc), validate_args=validate_args)

    @property
    def mean(self) -> Float[Array, " dim"]:
        """The mean."""
        return self.loc

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> Float[Array, "*sample dim"]:
        """Draw loc + L ε with ε standard normal.

        Args:
            key: a random key.
            sample_shape: how many to draw, as a shape; one by default.

        Returns:
            The draws [*sample_shape, dim].
        """
        noise = jax.random.normal(key, (*sample_shape, *self.event_shape), self.loc.dtype)
        return jnp.broadcast_to(self.loc, noise.shape) + noise @ self.scale_tril.T

    def log_prob(self, value: Float[Array, " dim"], intermediates: None = None) -> Float[Array, ""]:
        """log N(value; loc, L Lᵀ).

        Args:
            value: a point [dim].
            intermediates: not used.

        Returns:
            The log-density, a scalar.
        """
        white = self.whiten @ (value - self.loc)
        log_scale = -jnp.sum(jnp.log(jnp.abs(jnp.diagonal(self.whiten))))
        return -0.5 * jnp.sum(white**2) - log_scale - 0.5 * white.shape[-1] * jnp.log(2 * jnp.pi).astype(white.dtype)

    def marginal_log_prob(self, value: Float[Array, " dim"], mask: Bool[Array, " dim"]) -> Float[Array, ""]:
        """The log-density of some entries, with the others integrated out.

        Args:
            value: a point [dim]; missing entries may hold anything.
            mask: [dim], true where an entry was observed.

        Returns:
            The log-density, a scalar; zero if nothing was observed.
        """
        covariance = masked_covariance(self.scale_tril @ self.scale_tril.T, mask)
        whole = Gaussian(jnp.zeros_like(self.loc), jnp.linalg.cholesky(covariance))
        deviation = jnp.where(mask, value - self.loc, 0)
        constant = 0.5 * jnp.log(2 * jnp.pi).astype(deviation.dtype)
        return whole.log_prob(deviation) + jnp.sum(~mask).astype(deviation.dtype) * constant


def inverse_tril(scale_tril: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
    """L⁻¹ of a lower-triangular L.

    Args:
        scale_tril: L [dim, dim].

    Returns:
        Its inverse [dim, dim], lower-triangular too.
    """
    return solve_triangular(scale_tril, jnp.eye(scale_tril.shape[-1], dtype=scale_tril.dtype), lower=True)


def masked_covariance(covariance: Float[Array, "dim dim"], mask: Bool[Array, " dim"]) -> Float[Array, "dim dim"]:
    """A covariance in which missing entries are independent standard normals, so that they drop out of any product.

    Args:
        covariance: of all entries [dim, dim].
        mask: [dim], true where an entry was observed.

    Returns:
        The covariance [dim, dim].
    """
    both = mask[:, None] & mask[None, :]
    return jnp.where(both, covariance, jnp.eye(mask.shape[0], dtype=covariance.dtype))
