"""Conditional SMC (Algorithm 2 of the paper): the filter with one particle held on a given trajectory."""

from collections.abc import Collection
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Key, PyTree

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel, past_pairs
from fivo.models.scoring import log_prob, observation_log_prob
from fivo.resampling import Criterion, ESSBelow, Scheme
from fivo.resampling.conditional import ConditionalScheme, conditional_multinomial, get_conditional_scheme
from fivo.smc.ancestors import log_continuation
from fivo.smc.filter import FilterResult, Record, sequence_keys, without
from fivo.smc.step import (
    Particles,
    Proposed,
    StepInfo,
    StepInputs,
    check_particles,
    initial_particles,
    propose,
    select,
    weight_dtype,
)
from fivo.smc.whole import Reading, read_batch
from fivo.weights import effective_sample_size, normalize


def conditional_filter(
    model: SequenceModel,
    batch: Batch,
    reference: PyTree,
    *,
    num_particles: int,
    key: Key[Array, "*batch"],
    resampling: str | Scheme = "multinomial",
    criterion: Criterion = ESSBelow(0.5),
    ancestor_sampling: bool = False,
    keep: Collection[Record] = ("log_weights", "ancestors"),
) -> FilterResult:
    """Algorithm 2 on every sequence, around the trajectories `reference` [batch, time, ...].

    With references from the posterior, E[1 / p̂_N] = 1 / p(x), so that log p̂_N is on average an *upper* bound. With
    `ancestor_sampling` the past of the reference is drawn anew wherever particles are resampled (Lindsten, Jordan and
    Schön 2014), by what each particle gives the reference's future: O(N) a step where latents are Markov, O(N T) else.
    """
    check_particles(num_particles)
    scheme = get_conditional_scheme(resampling)
    if ancestor_sampling and scheme is not conditional_multinomial:
        raise InputError(
            f"got resampling={resampling!r} with ancestor_sampling, whose draws must be independent; use 'multinomial'."
        )
    for leaf in jax.tree.leaves(reference):
        if leaf.shape[:2] != batch.observations.shape[:2]:
            raise InputError(
                f"the reference has shape {leaf.shape} where [batch, time, ...] = "
                f"{batch.observations.shape[:2]} was expected."
            )
    keys = sequence_keys(key, batch.lengths.shape[0])
    program = _Program(scheme, criterion, num_particles, ancestor_sampling, frozenset(keep))
    particles, info = _run(program, model, batch, reference, keys)
    return FilterResult.of(particles, info)


class _Program(eqx.Module):
    """How a conditional filter runs on one sequence."""

    scheme: ConditionalScheme = eqx.field(static=True)
    criterion: Criterion
    num_particles: int = eqx.field(static=True)
    ancestor_sampling: bool = eqx.field(static=True)
    keep: frozenset[str] = eqx.field(static=True)

    def __call__(self, model: SequenceModel, reading: Reading, reference: PyTree, key: Key[Array, ""]) -> tuple:
        steps = jnp.arange(reading.x.shape[0], dtype=jnp.int32)
        now, following = past_pairs(reading.past)
        inputs = StepInputs(
            step=steps,
            key=jax.vmap(lambda t: jax.random.fold_in(key, t))(steps),
            active=reading.active,
            x=reading.x,
            mask=reading.mask,
            past=now,
            full=reading.full,
            past_next=following,
        )
        start = initial_particles(model, jax.tree.map(lambda leaf: leaf[0], reading.past), self.num_particles)

        def body(carry: tuple[Particles, Int[Array, ""]], inputs: tuple[StepInputs, PyTree]) -> tuple:
            carry, info = self.step(model, reading, reference, *carry, *inputs)
            return carry, without(info, self.keep)

        (particles, _), info = lax.scan(body, (start, jnp.zeros((), jnp.int32)), (inputs, reference))
        return particles, info

    def step(
        self,
        model: SequenceModel,
        reading: Reading,
        reference: PyTree,
        particles: Particles,
        slot: Int[Array, ""],
        inputs: StepInputs,
        latent: PyTree,
    ) -> tuple[tuple[Particles, Int[Array, ""]], StepInfo]:
        """One step; `slot` is the particle on the reference."""
        proposed = propose(model, particles.state, self.num_particles, inputs)
        held = _follow(model, jax.tree.map(lambda leaf: leaf[slot], particles.state), latent, inputs)
        latents, log_alpha, log_ratio, state, _ = jax.tree.map(
            lambda all_, one: all_.at[slot].set(one.astype(all_.dtype)), proposed, held
        )
        log_weights, log_increment = normalize(particles.log_weights + log_alpha)
        active = cast(Array, inputs.active)
        log_increment = jnp.where(active, log_increment, 0)
        log_weights = jnp.where(active, log_weights, particles.log_weights)

        resampled = self.criterion(log_weights, inputs.step) & active
        scheme_key, ancestor_key = jax.random.split(jax.random.split(inputs.key)[1])
        drawn, drawn_slot = self.scheme(scheme_key, log_weights, slot)
        if self.ancestor_sampling:
            log_future = log_continuation(model, reading, reference, state, inputs.step)
            chosen = jax.random.categorical(ancestor_key, log_weights + log_future)
            # Behind the last step there is no future to choose a past for.
            more = inputs.step + 1 < reading.length
            drawn = drawn.at[drawn_slot].set(jnp.where(more, chosen.astype(drawn.dtype), slot))
        ancestors = jnp.where(resampled, drawn, jnp.arange(self.num_particles, dtype=jnp.int32))
        uniform = jnp.full_like(log_weights, -jnp.log(self.num_particles))
        after = Particles(jax.tree.map(lambda leaf: leaf[ancestors], state), jnp.where(resampled, uniform, log_weights))
        info = StepInfo(
            log_increment=log_increment,
            ess=effective_sample_size(log_weights),
            resampled=resampled,
            kl=-jnp.mean(log_ratio),
            log_weights=log_weights,
            ancestors=ancestors,
            latents=latents,
        )
        return (after, jnp.where(resampled, drawn_slot, slot)), info


def _follow(model: SequenceModel, state: PyTree, latent: PyTree, inputs: StepInputs) -> Proposed:
    """One particle extended by a given latent."""
    prior = model.prior(state, inputs.past)
    proposal = model.proposal(state, inputs.full, prior)
    log_likelihood = observation_log_prob(model.emission(state, latent, inputs.past), inputs.x, inputs.mask)
    dtype = weight_dtype(model)
    ratio = 0.0 if proposal is prior else log_prob(prior, latent) - log_prob(proposal, latent)
    active = cast(Array, inputs.active)
    log_ratio = jnp.where(active, jnp.asarray(ratio, dtype), 0)
    log_alpha = jnp.where(active, log_likelihood.astype(dtype), 0) + log_ratio
    following = select(active, model.advance(state, latent, inputs.past_next), state)
    return Proposed(latent, log_alpha, log_ratio, following)


@eqx.filter_jit
def _run(
    program: _Program, model: SequenceModel, batch: Batch, reference: PyTree, keys: Key[Array, " batch"]
) -> tuple[Particles, StepInfo]:
    readings = read_batch(model, batch)
    return jax.vmap(lambda reading, path, key: program(model, reading, path, key))(readings, reference, keys)
