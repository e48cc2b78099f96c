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
        """p_t(z_t | ...) from the network's outputs."""
        ...

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.Distribution) -> dist.Distribution:
        """q_t(z_t | ...) from the network's outputs and the prior."""
        ...

    def features(self, latent: Shaped[Array, "..."]) -> Float[Array, " size"]:
        """What the latent encoder reads."""
        ...


class NormalLatent(eqx.Module):
    """Independent normals; the proposal's mean is residual to the prior's."""

    size: int = eqx.field(static=True)

    @property
    def num_outputs(self) -> int:
        return 2 * self.size

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.Normal:
        return diagonal_normal(outputs, LATENT_SHIFT)

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.Distribution) -> dist.Normal:
        return diagonal_normal(outputs, LATENT_SHIFT, mean=prior.mean)

    def features(self, latent: Float[Array, " size"]) -> Float[Array, " size"]:
        return latent


class CategoricalLatent(eqx.Module):
    """One of `size` classes, read as a one-hot vector; the proposal's logits are residual to the prior's.

    Derivatives do not pass through its draws: train it with a score gradient.
    """

    size: int = eqx.field(static=True)

    @property
    def num_outputs(self) -> int:
        return self.size

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.CategoricalLogits:
        return dist.CategoricalLogits(outputs)

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.CategoricalLogits) -> dist.CategoricalLogits:
        return dist.CategoricalLogits(prior.logits + outputs)

    def features(self, latent: Int[Array, ""]) -> Float[Array, " size"]:
        return jax.nn.one_hot(latent, self.size, dtype=jnp.float32)
