"""Smoothing for models whose latents are a Markov chain: backward simulation, and the fixed-lag approximation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.batch import Batch, as_batch
from fivo.distributions import log_prob
from fivo.errors import InputError
from fivo.models import Reading, SequenceModel, over_time, read_batch, start_state
from fivo.smc._filter import sequence_keys
from fivo.smc._result import RECORDS, FilterResult


def backward_simulate(
    model: SequenceModel, batch: Any, result: FilterResult, *, num_trajectories: int, key: Key[Array, "*batch"]
) -> PyTree:
    """Trajectories from p(z_1:T | x_1:T), equally weighted (Godsill et al. 2004).

    Args:
        model: a model whose latents are a Markov chain.
        batch: the sequences that were filtered.
        result: of a filter that kept "log_weights", "ancestors" and "latents".
        num_trajectories: how many to draw for each sequence.
        key: one random key, or one for each sequence.

    Returns:
        [batch, time, trajectory, ...]. From the last step backwards each z_t is drawn among all particles of its step,
        by w_t p(z_t+1 | z_t): early steps are as diverse as late ones, unlike in `trajectories`. O(N) a step and
        trajectory.
    """
    batch = as_batch(batch)
    _check(model, result)
    if not isinstance(num_trajectories, int) or num_trajectories < 1:
        raise InputError(f"num_trajectories must be a positive integer, got {num_trajectories!r}.")
    keys = sequence_keys(key, batch.lengths.shape[0])
    return _simulate(model, batch, result, keys, num_trajectories)


def fixed_lag(model: SequenceModel, batch: Any, result: FilterResult, *, lag: int) -> PyTree:
    """The particle estimate of E[z_t | x_1:t+lag], [batch, time, ...]: as if later frames told nothing more of z_t.

    Args:
        model: a model whose latents are a Markov chain.
        batch: the sequences that were filtered.
        result: of a filter that kept "log_weights", "ancestors" and "latents".
        lag: over how many steps ancestors are traced back; early steps keep their diversity.

    Returns:
        The estimate [batch, time, ...].
    """
    batch = as_batch(batch)
    _check(model, result)
    if not isinstance(lag, int) or lag < 0:
        raise InputError(f"lag must be an integer of at least 0, got {lag!r}.")
    time = batch.observations.shape[1]
    lag = min(lag, time - 1)

    def one(ancestors: Int[Array, "time particle"], log_weights: Float[Array, "time particle"], latents: PyTree):
        until = jnp.minimum(jnp.arange(time) + lag, time - 1)

        def back(index: Int[Array, "time particle"], steps: Int[Array, ""]):
            parent = until - steps - 1
            traced = jnp.take_along_axis(ancestors[jnp.maximum(parent, 0)], index, axis=1)
            return jnp.where((parent >= jnp.arange(time))[:, None], traced, index), None

        start = jnp.broadcast_to(jnp.arange(ancestors.shape[1], dtype=ancestors.dtype), ancestors.shape)
        index = lax.scan(back, start, jnp.arange(lag))[0]
        weights = jnp.exp(log_weights[until])

        def mean(leaf: Array) -> Array:
            wide = index.reshape(index.shape + (1,) * (leaf.ndim - 2))
            return jnp.einsum("tn,tn...->t...", weights, jnp.take_along_axis(leaf, wide, axis=1))

        return jax.tree.map(mean, latents)

    return jax.jit(jax.vmap(one))(result.record("ancestors"), result.filter_weights, result.latents)


@eqx.filter_jit
def _simulate(
    model: SequenceModel, batch: Batch, result: FilterResult, keys: Key[Array, " batch"], num_trajectories: int
) -> PyTree:
    def one(reading: Reading, ancestors: Array, log_weights: Array, latents: PyTree, key: Key[Array, ""]) -> PyTree:
        states = _advanced_states(model, reading, ancestors, latents)
        # context_{t+1}; after the last step nothing is scored.
        after = jax.tree.map(lambda leaf: jnp.concatenate([leaf[1:], leaf[-1:]]), reading.frames.context)

        def back(following: PyTree, inputs: tuple) -> tuple[PyTree, PyTree]:
            t, key, weights, state, latent, context_next = inputs

            def choose(key: Key[Array, ""], following: PyTree) -> Int[Array, ""]:
                scores = jax.vmap(lambda h: log_prob(model.prior(h, context_next), following))(state)
                scores = jnp.where(t + 1 < reading.length, scores, 0)
                return jax.random.categorical(key, weights + scores)

            chosen = jax.vmap(choose)(jax.random.split(key, num_trajectories), following)
            drawn = jax.tree.map(lambda leaf: leaf[chosen], latent)
            return drawn, drawn

        time = reading.frames.x.shape[0]
        nothing = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[0, :1], (num_trajectories, *leaf.shape[2:])), latents)
        inputs = (jnp.arange(time), jax.random.split(key, time), log_weights, states, latents, after)
        return lax.scan(back, nothing, inputs, reverse=True)[1]

    return jax.vmap(one)(
        read_batch(model, batch), result.record("ancestors"), result.filter_weights, result.latents, keys
    )


def _advanced_states(
    model: SequenceModel, reading: Reading, ancestors: Int[Array, "time particle"], latents: PyTree
) -> PyTree:
    """h_t+1 of every particle before resampling, [time, particle, ...], replayed from latents and ancestors."""

    def step(state: PyTree, inputs: tuple, first: bool) -> tuple[PyTree, PyTree]:
        row, latent, history = inputs
        advanced = jax.vmap(lambda h, z: model.advance(h, z, history))(state, latent)
        return jax.tree.map(lambda leaf: leaf[row], advanced), advanced

    before = start_state(model, reading.first_context)
    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (ancestors.shape[1], *jnp.shape(leaf))), before)
    return over_time(model, step, start, (ancestors, latents, reading.frames.history))[1]


def _check(model: SequenceModel, result: FilterResult) -> None:
    if not model.markov:
        raise InputError(
            f"the latents of {type(model).__name__} must be a Markov chain to be smoothed like this; use "
            "fivo.smc.trajectories or fivo.smc.particle_gibbs instead."
        )
    result.require(*RECORDS)
