"""The hidden Markov model with discrete latents and observations: small enough to enumerate."""

from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Shaped

from fivo.batch import Batch, Sequence, as_batch
from fivo.distributions import Symbols
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, check_inputs
from fivo.models._emissions import check_frames
from fivo.weights import log_sum_exp, normalize

Proposal = Literal["prior", "optimal", "smoothing"]


class DiscreteHMM(SequenceModel):
    """z_1 ~ π, z_t ~ A[z_{t-1}], x_t ~ E[z_t]; frames hold one symbol, 0 … M - 1.

    Args:
        initial_probs: π [state].
        transition_probs: A [state, state], a row for each previous state.
        emission_probs: E [state, symbol].
        proposal: `prior` (bootstrap), `optimal` p(z_t | z_{t-1}, x_t) or `smoothing` p(z_t | z_{t-1}, x_t:T).

    Parameters are kept as log-probabilities up to a constant per row, which training may change; -inf for what cannot
    happen.
    """

    initial_logits: Float[Array, " state"]
    transition_logits: Float[Array, "state state"]
    emission_logits: Float[Array, "state symbol"]
    proposal_kind: Proposal = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(self, *, initial_probs, transition_probs, emission_probs, proposal: Proposal = "prior") -> None:
        if proposal not in get_args(Proposal):
            raise InputError(f"proposal must be one of {', '.join(get_args(Proposal))}, got {proposal!r}.")
        states = np.shape(initial_probs)[-1] if np.ndim(initial_probs) == 1 else 0
        symbols = np.shape(emission_probs)[-1] if np.ndim(emission_probs) == 2 else 0
        given = {
            "initial_probs": (initial_probs, (states,)),
            "transition_probs": (transition_probs, (states, states)),
            "emission_probs": (emission_probs, (states, symbols)),
        }
        for name, (value, shape) in given.items():
            if np.shape(value) != shape or 0 in shape:
                raise InputError(f"{name} must have shape {shape or '[state]'}, got {np.shape(value)}.")
            if not isinstance(value, Tracer) and (
                (np.asarray(value) < 0).any() or not np.allclose(np.sum(value, axis=-1), 1, atol=1e-4)
            ):
                raise InputError(f"{name} is not a table of probabilities; each row must be positive and sum to 1.")
        self.initial_logits, self.transition_logits, self.emission_logits = (
            jnp.log(jnp.asarray(value, jnp.result_type(jnp.asarray(value), jnp.float32))) for value, _ in given.values()
        )
        self.proposal_kind = proposal

    def encode(self, sequence):
        check_frames(sequence.observations, 1)
        if self.proposal_kind == "smoothing":
            return None, self._scores(sequence) + self.exact_lookahead(sequence), None
        return None, (sequence.observations, sequence.mask), None

    def encode_next(self, memory, x, mask, inputs):
        check_frames(x, 1)
        return None if self.proposal_kind == "smoothing" else (x, mask), None, memory

    @property
    def causal(self) -> bool:
        return self.proposal_kind != "smoothing"

    def initial_state(self, context):
        return jnp.zeros((), jnp.int32)

    def initial_prior(self, state, context):
        return dist.CategoricalLogits(self.initial_logits)

    def prior(self, state, context):
        return dist.CategoricalLogits(self.transition_logits[state])

    def proposal(self, state, evidence, prior):
        if self.proposal_kind == "prior":
            return prior
        scores = evidence if self.proposal_kind == "smoothing" else self._log_likelihoods(*evidence)
        return dist.CategoricalLogits(normalize(prior.logits + scores)[0])  # pyright: ignore[reportAttributeAccessIssue]

    def emission(self, state, latent, context):
        return Symbols(self.emission_logits[latent][None, :])

    def advance(self, state, latent, history):
        return latent.astype(jnp.int32)

    def exact_lookahead(self, sequence: Sequence) -> Float[Array, "time state"]:
        """The exact lookahead of every step, by the backward algorithm.

        Args:
            sequence: observations [time, 1], length and mask.

        Returns:
            log p(x_t+1:T | z_t) for every step and state.
        """
        log_transition = normalize(self.transition_logits)[0]

        def back(later: Float[Array, " state"], scores: Float[Array, " state"]):
            ahead = log_sum_exp(log_transition + (later + scores)[None, :])
            return ahead, ahead

        scores = self._scores(sequence)
        last = jnp.zeros_like(scores[0])
        ahead = lax.scan(back, last, scores[1:], reverse=True)[1]
        return jnp.concatenate([ahead, last[None]])

    def log_lookahead(self, latent: Int[Array, ""], future: Float[Array, " state"]) -> Float[Array, ""]:
        """The exact lookahead of one latent.

        Args:
            latent: z_t.
            future: what `exact_lookahead` says of the step.

        Returns:
            log p(x_t+1:T | z_t).
        """
        return future[latent]

    def _scores(self, sequence: Sequence) -> Float[Array, "time state"]:
        """log p(x_t | z_t) for every step and state; zero past the sequence's end."""
        in_axes = (0, None if sequence.mask is None else 0)
        scores = jax.vmap(self._log_likelihoods, in_axes=in_axes)(sequence.observations, sequence.mask)
        return jnp.where((jnp.arange(scores.shape[0]) < sequence.length)[:, None], scores, 0)

    def log_evidence(self, batch: Any) -> Float[Array, " batch"]:
        """The exact log p(x_1:T) of every sequence, by the forward algorithm.

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            The log-evidence [batch].
        """
        return jnp.sum(self._forward(as_batch(batch))[0], axis=1)

    def filtered(self, batch: Any) -> Float[Array, "batch time state"]:
        """The exact p(z_t | x_1:t).

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            Probabilities [batch, time, state].
        """
        return jnp.exp(self._forward(as_batch(batch))[1])

    def smoothed(self, batch: Any) -> Float[Array, "batch time state"]:
        """The exact p(z_t | x_1:T).

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            Probabilities [batch, time, state].
        """
        batch = as_batch(batch)
        return _smoother(self, self._forward(batch)[1], batch.lengths)

    def _forward(self, batch: Batch) -> tuple[Float[Array, "batch time"], Float[Array, "batch time state"]]:
        check_inputs(self, 0 if batch.inputs is None else batch.inputs.shape[-1])
        return _forward(self, batch.observations, batch.mask, batch.lengths)

    def _log_likelihoods(self, x: Shaped[Array, " one"], mask: Bool[Array, " one"] | None) -> Float[Array, " state"]:
        """log p(x_t | z_t) for every state; zero for a missing symbol."""
        scores = jax.vmap(lambda logits: Symbols(logits[None, :]).log_prob(x)[0])(self.emission_logits)
        return scores if mask is None else jnp.where(mask[0], scores, 0)


@jax.jit
def _forward(model: DiscreteHMM, observations, mask, lengths):
    log_transition = normalize(model.transition_logits)[0]

    def one(observations: Shaped[Array, "time one"], mask: Bool[Array, "time one"] | None, length: Int[Array, ""]):
        def step(log_predicted, inputs):
            t, x, mask_t = inputs
            log_joint = log_predicted + jnp.where(t < length, model._log_likelihoods(x, mask_t), 0)
            log_filtered, increment = normalize(log_joint)
            log_next = log_sum_exp((log_filtered[:, None] + log_transition).T)
            return log_next, (jnp.where(t < length, increment, 0), log_filtered)

        return lax.scan(
            step, normalize(model.initial_logits)[0], (jnp.arange(observations.shape[0]), observations, mask)
        )[1]

    return jax.vmap(one, in_axes=(0, None if mask is None else 0, 0))(observations, mask, lengths)


@jax.jit
def _smoother(model: DiscreteHMM, log_filtered, lengths):
    log_transition = normalize(model.transition_logits)[0]

    def one(log_filtered: Float[Array, "time state"], length: Int[Array, ""]):
        def step(log_next, inputs):
            log_now, last = inputs
            log_pair = log_now[:, None] + log_transition
            log_predicted = log_sum_exp(log_pair.T)
            ratio = jnp.where(jnp.isneginf(log_predicted), -jnp.inf, log_next - log_predicted)
            log_smoothed = jnp.where(last, log_now, log_sum_exp(log_pair + ratio[None, :]))
            return log_smoothed, log_smoothed

        last = jnp.arange(log_filtered.shape[0]) >= length - 1
        return jnp.exp(lax.scan(step, log_filtered[-1], (log_filtered, last), reverse=True)[1])

    return jax.vmap(one)(log_filtered, lengths)
