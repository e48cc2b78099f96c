"""Whole trajectories z_1:T of one sequence: draws from q(z | x), and their densities under p and q."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from fivo.batch import Batch
from fivo.models.contract import SequenceModel, past_pairs
from fivo.models.scoring import log_prob, observation_log_prob, sample, weight_dtype

Propose = Callable[[PyTree, PyTree, dist.Distribution], dist.Distribution]
"""q_t from (h_t, full_t, p_t), as the model's own `proposal`."""


class Reading(NamedTuple):
    """What p and q see of one sequence, encoded once; `batched` readings have a first axis of sequences."""

    x: Shaped[Array, "*batch time dim"]
    mask: Bool[Array, "*batch time dim"] | None
    length: Int[Array, "*batch"]
    past: PyTree
    full: PyTree

    @property
    def active(self) -> Bool[Array, " time"]:
        """Whether a step lies before the sequence's end."""
        return jnp.arange(self.x.shape[0]) < self.length


class Densities(NamedTuple):
    """log p(z), log p(x | z) and log q(z | x) of one trajectory."""

    log_prior: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    log_proposal: Float[Array, ""]

    @property
    def log_weight(self) -> Float[Array, ""]:
        """log p(x, z) - log q(z | x)."""
        return self.log_prior + self.log_likelihood - self.log_proposal


def read(
    model: SequenceModel,
    observations: Shaped[Array, "time dim"],
    mask: Bool[Array, "time dim"] | None,
    length: Int[Array, ""],
) -> Reading:
    """Encode one sequence; what is missing or behind its end is zero, as the filter shows it to a model."""
    if jnp.issubdtype(observations.dtype, jnp.floating):
        observations = observations.astype(weight_dtype(model))
    seen = (jnp.arange(observations.shape[0]) < length)[:, None]
    observations = jnp.where(seen if mask is None else mask & seen, observations, 0)
    return Reading(observations, mask, length, *model.encode(observations, mask, length))


def read_batch(model: SequenceModel, batch: Batch) -> Reading:
    """The readings of all sequences, stacked."""
    in_axes = (0, None if batch.mask is None else 0, 0)
    stacked = jax.vmap(lambda *sequence: read(model, *sequence), in_axes=in_axes)
    return stacked(batch.observations, batch.mask, batch.lengths)


def draw(
    model: SequenceModel,
    reading: Reading,
    key: Key[Array, ""],
    propose: Propose | None = None,
    full: PyTree = None,
) -> PyTree:
    """z_1:T ~ q(z | x), [time, ...]; another q than the model's is given by `propose` and what it reads of x."""
    propose, full = _proposal(model, reading, propose, full)
    dtype = weight_dtype(model)

    def step(state: PyTree, inputs: tuple) -> tuple[PyTree, PyTree]:
        key, past, full, past_next = inputs
        latent = sample(propose(state, full, model.prior(state, past)), key, dtype)
        return model.advance(state, latent, past_next), latent

    now, following = past_pairs(reading.past)
    keys = jax.random.split(key, reading.x.shape[0])
    return lax.scan(step, _initial_state(model, reading), (keys, now, full, following))[1]


def densities(
    model: SequenceModel, reading: Reading, latents: PyTree, propose: Propose | None = None, full: PyTree = None
) -> Densities:
    """The densities of given latents [time, ...]; what stands behind the end has none."""
    propose, full = _proposal(model, reading, propose, full)

    def step(state: PyTree, inputs: tuple) -> tuple[PyTree, Densities]:
        latent, active, x, mask, past, full, past_next = inputs
        prior = model.prior(state, past)
        proposal = propose(state, full, prior)
        log_prior = log_prob(prior, latent)
        log_proposal = log_prior if proposal is prior else log_prob(proposal, latent)
        log_likelihood = observation_log_prob(model.emission(state, latent, past), x, mask)
        scores = Densities(*(jnp.where(active, score, 0) for score in (log_prior, log_likelihood, log_proposal)))
        return model.advance(state, latent, past_next), scores

    now, following = past_pairs(reading.past)
    inputs = (latents, reading.active, reading.x, reading.mask, now, full, following)
    scores = lax.scan(step, _initial_state(model, reading), inputs)[1]
    return Densities(*(jnp.sum(score).astype(weight_dtype(model)) for score in scores))


def _proposal(model: SequenceModel, reading: Reading, propose: Propose | None, full: PyTree) -> tuple[Propose, PyTree]:
    return (model.proposal, reading.full) if propose is None else (propose, full)


def _initial_state(model: SequenceModel, reading: Reading) -> PyTree:
    return model.initial_state(jax.tree.map(lambda leaf: leaf[0], reading.past))
