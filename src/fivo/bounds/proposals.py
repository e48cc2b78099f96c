"""Proposals beside the model's own, and gates that weight them: the q_i and w_i(x) of multiple importance sampling."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from fivo.models.contract import SequenceModel


class Proposal(eqx.Module):
    """q_t(z_t | history, x) for a model's latents, from the model's own state and prior."""

    def encode(
        self,
        model: SequenceModel,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> PyTree:
        """What q_t reads of x, [time, ...]: by default x_t."""
        return observations

    def __call__(
        self, model: SequenceModel, state: PyTree, full: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        raise NotImplementedError


class OwnProposal(Proposal):
    """The model's own q."""

    def encode(
        self,
        model: SequenceModel,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> PyTree:
        return model.encode(observations, mask, length)[1]

    def __call__(
        self, model: SequenceModel, state: PyTree, full: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        return model.proposal(state, full, prior)


class AffineProposal(Proposal):
    """q_t = N(G x_t + b, diag(exp(2 s))), the same at every step."""

    gain: Float[Array, "state dim"]
    bias: Float[Array, " state"]
    log_scale: Float[Array, " state"]

    def __call__(
        self, model: SequenceModel, state: PyTree, full: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        return dist.Normal(self.gain @ full + self.bias, jnp.exp(self.log_scale))


@runtime_checkable
class Gate(Protocol):
    """log w_i(x) up to a constant, from one sequence."""

    def __call__(
        self,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> Float[Array, " proposal"]: ...


class ConstantGate(eqx.Module):
    """The same weights for every x."""

    logits: Float[Array, " proposal"]

    def __call__(
        self,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> Float[Array, " proposal"]:
        return self.logits


class AffineGate(eqx.Module):
    """Weights by a softmax of an affine function of the sequence's mean frame."""

    weight: Float[Array, "proposal dim"]
    bias: Float[Array, " proposal"]

    def __call__(
        self,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> Float[Array, " proposal"]:
        seen = (jnp.arange(observations.shape[0]) < length)[:, None]
        seen = jnp.broadcast_to(seen if mask is None else seen & mask, observations.shape)
        mean = jnp.sum(jnp.where(seen, observations, 0), axis=0) / jnp.maximum(jnp.sum(seen, axis=0), 1)
        return self.weight @ mean + self.bias
