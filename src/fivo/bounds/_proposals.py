"""More proposals than the model's, and gates that weight them: the q_i and w_i(x) of multiple importance sampling."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, PyTree

from fivo.batch import Sequence
from fivo.models import SequenceModel


class Proposal(eqx.Module):
    """q_t(z_t | history, x) for a model's latents, from the model's own state and prior. Subclass it for your own."""

    def encode(self, model: SequenceModel, sequence: Sequence) -> PyTree:
        """What q_t reads of x; by default x_t.

        Args:
            model: the model.
            sequence: the sequence.

        Returns:
            What `__call__` gets as evidence, for every step [time, ...].
        """
        return sequence.observations

    @abstractmethod
    def __call__(
        self, model: SequenceModel, state: PyTree, evidence: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        """The proposal of a step.

        Args:
            model: the model.
            state: h_t.
            evidence: what `encode` returned for the step.
            prior: p_t.

        Returns:
            q_t.
        """


class OwnProposal(Proposal):
    """The model's own q."""

    def encode(self, model: SequenceModel, sequence: Sequence) -> PyTree:
        return model.encode(sequence)[1]

    def __call__(
        self, model: SequenceModel, state: PyTree, evidence: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        return model.proposal(state, evidence, prior)


class AffineProposal(Proposal):
    """q_t = N(G x_t + b, diag(exp(2 s))), the same at every step.

    Args:
        gain: G [state, dim].
        bias: b [state].
        log_scale: s [state].
    """

    gain: Float[Array, "state dim"]
    bias: Float[Array, " state"]
    log_scale: Float[Array, " state"]

    def __call__(
        self, model: SequenceModel, state: PyTree, evidence: PyTree, prior: dist.Distribution
    ) -> dist.Distribution:
        return dist.Normal(self.gain @ evidence + self.bias, jnp.exp(self.log_scale))


class Gate(eqx.Module):
    """log w_i(x) up to a constant, from one sequence. Subclass it for a gate of your own."""

    @abstractmethod
    def __call__(self, sequence: Sequence) -> Float[Array, " proposal"]:
        """How much each proposal counts for a sequence.

        Args:
            sequence: the sequence.

        Returns:
            One logit for each proposal [proposal].
        """


class ConstantGate(Gate):
    """The same weights for every x.

    Args:
        logits: log w_i up to a constant [proposal].
    """

    logits: Float[Array, " proposal"]

    def __call__(self, sequence: Sequence) -> Float[Array, " proposal"]:
        return self.logits


class AffineGate(Gate):
    """Weights by a softmax of an affine function of the sequence's mean frame.

    Args:
        weight: [proposal, dim].
        bias: [proposal].
    """

    weight: Float[Array, "proposal dim"]
    bias: Float[Array, " proposal"]

    def __call__(self, sequence: Sequence) -> Float[Array, " proposal"]:
        x, mask = sequence.observations, sequence.mask
        seen = (jnp.arange(x.shape[0]) < sequence.length)[:, None]
        seen = jnp.broadcast_to(seen if mask is None else seen & mask, x.shape)
        mean = jnp.sum(jnp.where(seen, x, 0), axis=0) / jnp.maximum(jnp.sum(seen, axis=0), 1)
        return self.weight @ mean + self.bias
