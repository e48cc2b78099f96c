"""Covariances that gradient steps cannot break, and Gaussians times likelihoods."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fivo.distributions import inverse_tril
from fivo.models._kalman import symmetric


class Scale(NamedTuple):
    """A lower-triangular factor L of a covariance and its inverse."""

    scale_tril: Float[Array, "*time n n"]
    whiten: Float[Array, "*time n n"]


class Covariance(eqx.Module):
    """A covariance matrix L Lᵀ as free parameters, whatever values an optimizer gives them.

    Args:
        free: the entries of L below its diagonal, and the logs of those on it [n, n].
    """

    free: Float[Array, "n n"]

    @classmethod
    def of(cls, matrix: Float[Array, "n n"]) -> "Covariance":
        """The parameters of a covariance matrix.

        Args:
            matrix: a positive definite matrix [n, n].

        Returns:
            Its parameters.
        """
        scale_tril = jnp.linalg.cholesky(matrix)
        return cls(jnp.tril(scale_tril, -1) + jnp.diag(jnp.log(jnp.diagonal(scale_tril))))

    @property
    def scale_tril(self) -> Float[Array, "n n"]:
        """L; its diagonal is positive whatever the parameters are."""
        return jnp.tril(self.free, -1) + jnp.diag(jnp.exp(jnp.diagonal(self.free)))

    @property
    def scale(self) -> Scale:
        """L and its inverse."""
        scale_tril = self.scale_tril
        return Scale(scale_tril, inverse_tril(scale_tril))

    @property
    def matrix(self) -> Float[Array, "n n"]:
        """L Lᵀ."""
        scale_tril = self.scale_tril
        return scale_tril @ scale_tril.T


class Information(NamedTuple):
    """A likelihood of z proportional to exp(-zᵀ Λ z / 2 + ηᵀ z)."""

    precision: Float[Array, "*time state state"]
    shift: Float[Array, "*time state"]


class Posterior(NamedTuple):
    """What a Gaussian prior becomes given a likelihood: its covariance S and the factors of S."""

    covariance: Float[Array, "state state"]
    scale: Scale

    def mean(self, prior_mean: Float[Array, " state"], seen: Information) -> Float[Array, " state"]:
        """m + S (η - Λ m)."""
        return prior_mean + self.covariance @ (seen.shift - seen.precision @ prior_mean)


def factor(covariance: Float[Array, "n n"]) -> Scale:
    """The lower-triangular factor of a covariance and its inverse."""
    scale_tril = jnp.linalg.cholesky(covariance)
    return Scale(scale_tril, inverse_tril(scale_tril))


def posterior(scale_tril: Float[Array, "state state"], seen: Information) -> Posterior:
    """The covariance (P⁻¹ + Λ)⁻¹ of a Gaussian with P = L Lᵀ given a likelihood."""
    inner = jnp.eye(seen.shift.shape[0], dtype=seen.shift.dtype) + scale_tril.T @ seen.precision @ scale_tril
    half = factor(symmetric(inner)).whiten @ scale_tril.T
    covariance = half.T @ half
    return Posterior(covariance, factor(covariance))
