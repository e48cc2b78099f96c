"""The latents of a neural model: how a network's outputs become p and q, and how a latent enters the networks."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, Shaped

from fivo.models._emissions import LATENT_SHIFT, diagonal_normal


@runtime_checkable
class Latent(Protocol):
    """A family of priors and proposals; the proposal's network gives its difference from the prior."""

    @property
    def size(self) -> int:
        """How many numbers the latent encoder reads."""
        ...

    @property
    def num_outputs(self) -> int:
        """What the networks of prior and proposal return."""
        ...

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        """p_t(z_t | ...) from the network's outputs.

        Args:
            outputs: of the prior network [num_outputs].

        Returns:
            The prior.
        """
        ...

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.Distribution) -> dist.Distribution:
        """q_t(z_t | ...) from the network's outputs and the prior.

        Args:
            outputs: of the proposal network [num_outputs].
            prior: p_t, to which the proposal is residual.

        Returns:
            The proposal.
        """
        ...

    def features(self, latent: Shaped[Array, "..."]) -> Float[Array, " size"]:
        """What the latent encoder reads.

        Args:
            latent: z_t.

        Returns:
            Numbers for the networks [size].
        """
        ...


class NormalLatent(eqx.Module):
    """Independent normals; the proposal's mean is residual to the prior's.

    Args:
        size: the dimension of z_t.
    """

    size: int = eqx.field(static=True)

    @property
    def num_outputs(self) -> int:
        """How many numbers the networks give for p_t and for q_t."""
        return 2 * self.size

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.Normal:
        """N(μ, σ²) from means and raw scales.

        Args:
            outputs: of the prior network [num_outputs].

        Returns:
            The prior.
        """
        return diagonal_normal(outputs, LATENT_SHIFT)

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.Distribution) -> dist.Normal:
        """The same, with a mean that is residual to the prior's.

        Args:
            outputs: of the proposal network [num_outputs].
            prior: p_t.

        Returns:
            The proposal.
        """
        return diagonal_normal(outputs, LATENT_SHIFT, mean=prior.mean)

    def features(self, latent: Float[Array, " size"]) -> Float[Array, " size"]:
        """z_t itself.

        Args:
            latent: z_t.

        Returns:
            Numbers for the networks [size].
        """
        return latent


class CategoricalLatent(eqx.Module):
    """One of `size` classes, read as a one-hot vector; the proposal's logits are residual to the prior's.

    Derivatives do not pass through its draws: train it with a score gradient.

    Args:
        size: the number of classes.
    """

    size: int = eqx.field(static=True)

    @property
    def num_outputs(self) -> int:
        """How many numbers the networks give for p_t and for q_t."""
        return self.size

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.CategoricalLogits:
        """A categorical from logits.

        Args:
            outputs: of the prior network [num_outputs].

        Returns:
            The prior.
        """
        return dist.CategoricalLogits(outputs)

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.CategoricalLogits) -> dist.CategoricalLogits:
        """A categorical whose logits are residual to the prior's.

        Args:
            outputs: of the proposal network [num_outputs].
            prior: p_t.

        Returns:
            The proposal.
        """
        return dist.CategoricalLogits(prior.logits + outputs)

    def features(self, latent: Int[Array, ""]) -> Float[Array, " size"]:
        """z_t as a one-hot vector.

        Args:
            latent: z_t.

        Returns:
            Numbers for the networks [size].
        """
        return jax.nn.one_hot(latent, self.size, dtype=jnp.float32)
