"""Whole trajectories z_1:T of one sequence: what the model reads of it, draws from q, densities under p and q."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo._fuse import flatten_products
from fivo.batch import Batch, Sequence, over_sequences
from fivo.distributions import log_prob, sample, weight_dtype
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, check_inputs, check_kind, has_initial_prior
from fivo.models._extend import Ahead, Frame, Propose, extend, start_state


class Reading(NamedTuple):
    """One sequence as a model reads it.

    A batch of them has a first axis of sequences, or a second one where it is read time first.

    Args:
        frames: what each step reads [time, ...].
        length: of the sequence.
    """

    frames: Frame
    length: Int[Array, "*batch"]

    @property
    def active(self) -> Bool[Array, " time"]:
        """Whether a step is before the sequence's end."""
        return jnp.arange(self.frames.x.shape[0]) < self.length

    @property
    def first_context(self) -> PyTree:
        """context_1."""
        return jax.tree.map(lambda leaf: leaf[0], self.frames.context)


class Densities(NamedTuple):
    """The densities of one trajectory.

    Args:
        log_prior: log p(z).
        log_likelihood: log p(x | z).
        log_proposal: log q(z | x).
    """

    log_prior: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    log_proposal: Float[Array, ""]

    @property
    def log_weight(self) -> Float[Array, ""]:
        """log p(x, z) - log q(z | x)."""
        return self.log_prior + self.log_likelihood - self.log_proposal


def shown(model: SequenceModel, sequence: Sequence) -> Sequence:
    """A sequence as a model sees it: real numbers in the model's own type, zeros at missing entries and past its end.

    Raises `InputError` for inputs of a width that the model does not read.

    Args:
        model: the model.
        sequence: the sequence.

    Returns:
        The sequence.
    """
    check_kind(model)
    dtype = weight_dtype(model)
    x, mask, inputs = sequence.observations, sequence.mask, sequence.inputs
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(dtype)
    active = (jnp.arange(x.shape[0]) < sequence.length)[:, None]
    # Selected here too: a NaN past the end would not reach the estimate, but it would reach its gradient.
    x = jnp.where(active if mask is None else mask & active, x, 0)
    check_inputs(model, 0 if inputs is None else inputs.shape[-1])
    if inputs is not None:
        inputs = jnp.where(active, inputs.astype(dtype), 0)
    return Sequence(x, sequence.length, mask, inputs)


def read(model: SequenceModel, sequence: Sequence, *, twisted: bool = False) -> Reading:
    """Encode one sequence, as the filter shows it to a model.

    Args:
        model: the model.
        sequence: the sequence.
        twisted: whether to read what lies ahead too, for a twisted filter.

    Returns:
        What each step reads.
    """
    sequence = shown(model, sequence)
    context, evidence, history = _encoded(model, sequence)
    frames = Frame(sequence.observations, sequence.mask, context, evidence, history)
    if twisted:
        frames = frames._replace(ahead=_ahead(model, sequence))
    return Reading(frames, sequence.length)


def read_batch(model: SequenceModel, batch: Batch, *, time_first: bool = False, twisted: bool = False) -> Reading:
    """Encode all sequences of a batch.

    Args:
        model: the model.
        batch: the sequences.
        time_first: whether the axis of time comes before that of sequences.
        twisted: whether to read what lies ahead too, for a twisted filter.

    Returns:
        What each step reads [batch, time, ...], or [time, batch, ...].
    """
    out_axes = Reading(Frame(*((1,) * 6)), 0) if time_first else 0  # pyright: ignore[reportArgumentType]
    one = lambda s: read(model, s, twisted=twisted)  # noqa: E731
    return flatten_products(lambda b: over_sequences(one, b, out_axes=out_axes))(batch)


def over_time(
    model: SequenceModel,
    step: Callable[[PyTree, Any, bool], tuple[PyTree, PyTree]],
    start: PyTree,
    inputs: PyTree,
    scan: Callable[..., tuple[PyTree, PyTree]] = lax.scan,
) -> tuple[PyTree, PyTree]:
    """Run a step over time; for a model with an `initial_prior` the first step runs before the scan.

    Args:
        model: the model.
        step: a function (carry, input, first) -> (carry, output).
        start: the first carry.
        inputs: what the steps read [time, ...].
        scan: `jax.lax.scan`, or one that does the same.

    Returns:
        The last carry, and the outputs of all steps [time, ...].
    """
    if not has_initial_prior(model):
        return scan(lambda carry, now: step(carry, now, False), start, inputs)
    carry, head = step(start, jax.tree.map(lambda leaf: leaf[0], inputs), True)
    head = jax.tree.map(lambda leaf: leaf[None], head)
    rest = jax.tree.map(lambda leaf: leaf[1:], inputs)
    if jax.tree.leaves(inputs)[0].shape[0] == 1:
        return carry, head
    carry, tail = scan(lambda carry, now: step(carry, now, False), carry, rest)
    return carry, jax.tree.map(lambda *pair: jnp.concatenate(pair), head, tail)


def draw(
    model: SequenceModel,
    reading: Reading,
    *,
    key: Key[Array, ""],
    propose: Propose | None = None,
    evidence: PyTree = None,
) -> PyTree:
    """Draw z_1:T ~ q(z | x).

    Args:
        model: the model.
        reading: the sequence, as `read` returns it.
        key: a random key.
        propose: another q_t than the model's own.
        evidence: what that q_t reads, [time, ...].

    Returns:
        The latents [time, ...].
    """
    frames = reading.frames if propose is None else reading.frames._replace(evidence=evidence)
    dtype = weight_dtype(model)

    def step(state: PyTree, inputs: tuple, first: bool) -> tuple[PyTree, PyTree]:
        key, frame = inputs
        made = extend(model, state, frame, lambda q: sample(q, key, dtype), first=first, propose=propose)
        return made.state, made.latent

    keys = jax.random.split(key, frames.x.shape[0])
    return over_time(model, step, start_state(model, reading.first_context), (keys, frames))[1]


def densities(
    model: SequenceModel, reading: Reading, latents: PyTree, propose: Propose | None = None, evidence: PyTree = None
) -> Densities:
    """The densities of given latents; steps past the sequence's end have none.

    Args:
        model: the model.
        reading: the sequence, as `read` returns it.
        latents: z [time, ...].
        propose: another q_t than the model's own.
        evidence: what that q_t reads, [time, ...].

    Returns:
        log p(z), log p(x | z) and log q(z | x).
    """
    frames = reading.frames if propose is None else reading.frames._replace(evidence=evidence)

    def step(state: PyTree, inputs: tuple, first: bool) -> tuple[PyTree, Densities]:
        latent, active, frame = inputs
        made = extend(model, state, frame, lambda _: latent, first=first, propose=propose)
        log_prior = log_prob(made.prior, latent)
        log_proposal = log_prior if made.proposal is made.prior else log_prob(made.proposal, latent)
        scores = (log_prior, made.log_likelihood, log_proposal)
        return made.state, Densities(*(jnp.where(active, score, 0) for score in scores))

    start = start_state(model, reading.first_context)
    scores = over_time(model, step, start, (latents, reading.active, frames))[1]
    return Densities(*(jnp.sum(score).astype(weight_dtype(model)) for score in scores))


def _encoded(model: SequenceModel, sequence: Sequence) -> tuple[PyTree, PyTree, PyTree]:
    """What `encode` returns, if it is what the contract asks for."""
    found = model.encode(sequence)
    if not isinstance(found, tuple) or len(found) != 3:
        raise InputError(
            f"{type(model).__name__}.encode must return (context, evidence, history), got "
            f"{f'{len(found)} values' if isinstance(found, tuple) else type(found).__name__}."
        )
    for name, tree in zip(("context", "evidence", "history"), found, strict=True):
        _check_entries(f"{type(model).__name__}.encode must return {name}", tree, sequence)
    return found


def _ahead(model: SequenceModel, sequence: Sequence) -> Ahead:
    """What `lookahead` returns, and where the sequence ends."""
    future = model.lookahead(sequence)
    _check_entries(f"{type(model).__name__}.lookahead must return the future", future, sequence)
    return Ahead(future, jnp.arange(sequence.observations.shape[0]) >= sequence.length - 1)


def _check_entries(must: str, tree: PyTree, sequence: Sequence) -> None:
    time = sequence.observations.shape[0]
    for leaf in jax.tree.leaves(tree):
        if jnp.shape(leaf)[:1] != (time,):
            raise InputError(f"{must} with {time} entries, one per step, got an array of shape {jnp.shape(leaf)}.")


def log_prior_ratio(prior: dist.Distribution, proposal: dist.Distribution, latent: PyTree) -> Float[Array, ""]:
    """log p_t(z_t) - log q_t(z_t).

    Args:
        prior: p_t.
        proposal: q_t.
        latent: z_t.

    Returns:
        The log-ratio, a scalar.
    """
    return log_prob(prior, latent) - log_prob(proposal, latent)
