"""Conditional SMC (Algorithm 2 of the paper): the filter with one particle held on a given trajectory."""

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PyTree

from fivo.batch import Batch, as_batch
from fivo.distributions import log_prob
from fivo.errors import InputError
from fivo.models import Reading, SequenceModel, extend, inspect_step, log_twist_of, over_time, read_batch, untwisted
from fivo.resampling import get_conditional_scheme, multinomial
from fivo.smc._ancestors import log_continuation
from fivo.smc._filter import ParticleFilter, check_filter, check_twist, sequence_keys
from fivo.smc._result import FilterResult, Record, checked_records, without
from fivo.smc._rules import Proposed
from fivo.smc._step import (
    Particles,
    StepInfo,
    StepInputs,
    initial_particles,
    only_active,
    propose,
    uniform_weights,
    weigh,
)


def conditional_filter(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Any,
    reference: PyTree,
    *,
    key: Key[Array, "*batch"],
    ancestor_sampling: bool = False,
    keep: Collection[Record] = (),
) -> FilterResult:
    """Run Algorithm 2 on every sequence of a batch, around given trajectories.

    Args:
        pf: the filter; its scheme must have a conditional form (multinomial, stratified, systematic).
        model: the model.
        batch: a `Batch`, or what can be made one.
        reference: a trajectory for each sequence, [batch, time, ...].
        key: one random key, or one for each sequence.
        ancestor_sampling: redraw the past of the reference whenever particles are resampled (Lindsten, Jordan and
            Schön 2014), by what each particle gives the reference's future: O(N) a step where latents are Markov, O(N
            T) elsewhere.
        keep: which per-particle records to return: "log_weights", "ancestors", "latents".

    Returns:
        What the filter found. With references from the posterior E[1 / p̂_N] = 1 / p(x), so that log p̂_N is on average
        an *upper* bound.
    """
    check_filter(pf)
    scheme, batch, records = pf.scheme, as_batch(batch), checked_records(keep)
    get_conditional_scheme(scheme)
    if ancestor_sampling and scheme is not multinomial:
        raise InputError(
            f"ancestor_sampling needs independent draws, and so multinomial resampling, got {pf.resampling!r}."
        )
    for leaf in jax.tree.leaves(reference):
        if leaf.shape[:2] != batch.observations.shape[:2]:
            raise InputError(
                f"the reference must have shape [batch, time, ...] = {batch.observations.shape[:2]}, got {leaf.shape}."
            )
    keys = sequence_keys(key, batch.lengths.shape[0])
    return FilterResult.of(*_run(pf, model, batch, reference, keys, ancestor_sampling, records))


@eqx.filter_jit
def _run(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Batch,
    reference: PyTree,
    keys: Key[Array, " batch"],
    ancestor_sampling: bool,
    keep: frozenset[str],
) -> tuple[Particles, StepInfo]:
    check_twist(pf, model)
    readings = read_batch(model, batch, twisted=pf.twisted)
    inspect_step(model, readings.frames._replace(ahead=None), num_axes=2)

    def one(reading: Reading, path: PyTree, key: Key[Array, ""]) -> tuple[Particles, StepInfo]:
        steps = jnp.arange(reading.frames.x.shape[0], dtype=jnp.int32)
        keys = jax.vmap(lambda t: jax.random.fold_in(key, t))(steps)
        inputs = StepInputs(steps, keys, reading.active, reading.frames)
        start = initial_particles(model, reading.first_context, pf.num_particles, twisted=pf.twisted)

        def step(carry: tuple[Particles, Int[Array, ""]], now: tuple[StepInputs, PyTree], first: bool) -> tuple:
            carry, info = _step(pf, model, reading, path, ancestor_sampling, carry, *now, first)
            return carry, without(info, keep)

        (particles, _), info = over_time(model, step, (start, jnp.zeros((), jnp.int32)), (inputs, path))
        return particles, info

    return jax.vmap(one)(readings, reference, keys)


def _step(
    pf: ParticleFilter,
    model: SequenceModel,
    reading: Reading,
    path: PyTree,
    ancestor_sampling: bool,
    carry: tuple[Particles, Int[Array, ""]],
    inputs: StepInputs,
    latent: PyTree,
    first: bool,
) -> tuple[tuple[Particles, Int[Array, ""]], StepInfo]:
    """Lines 5-17 of Algorithm 2 for one sequence; the carry ends with the particle that is on the reference."""
    particles, slot = carry
    made = propose(model, particles.state, pf.num_particles, inputs, first)
    held = _follow(model, jax.tree.map(lambda leaf: leaf[slot], particles.state), latent, inputs, first)
    made = jax.tree.map(lambda all_, one: all_.at[slot].set(one.astype(all_.dtype)), made, held)
    particles, info = weigh(pf.criterion, particles, made, inputs)
    log_weights = info.log_weights
    scheme_key, ancestor_key = jax.random.split(jax.random.split(inputs.key)[1])
    drawn, drawn_slot = get_conditional_scheme(pf.scheme)(scheme_key, log_weights, slot)
    if ancestor_sampling:
        log_future = log_continuation(model, reading, path, untwisted(made.state), inputs.step)
        if made.log_twist is not None:
            # The weights have r_t in them, which the reference's own future takes the place of.
            log_future = log_future - jnp.where(jnp.isneginf(made.log_twist), 0, made.log_twist)
        chosen = jax.random.categorical(ancestor_key, log_weights + log_future)
        # After the last step there is no future to choose a past for.
        more = inputs.step + 1 < reading.length
        drawn = drawn.at[drawn_slot].set(jnp.where(more, chosen.astype(drawn.dtype), slot))
    ancestors = jnp.where(info.resampled, drawn, info.ancestors)
    uniform = uniform_weights(pf.num_particles, log_weights.dtype)
    after = Particles(
        jax.tree.map(lambda leaf: leaf[ancestors], made.state), jnp.where(info.resampled, uniform, log_weights)
    )
    info = eqx.tree_at(lambda i: i.ancestors, info, ancestors)
    return (after, jnp.where(info.resampled, drawn_slot, slot)), info


def _follow(model: SequenceModel, state: PyTree, latent: PyTree, inputs: StepInputs, first: bool) -> Proposed:
    """One particle extended by a given latent."""
    made = extend(model, state, inputs.frame, lambda _: latent, first=first)
    log_ratio = jnp.zeros_like(made.log_likelihood)
    if made.proposal is not made.prior:
        log_ratio = (log_prob(made.prior, latent) - log_prob(made.proposal, latent)).astype(log_ratio.dtype)
    held = Proposed(latent, made.log_likelihood, log_ratio, made.state)
    held = held if inputs.active is None else only_active(inputs.active, held, state)
    return held._replace(log_twist=log_twist_of(held.state))
