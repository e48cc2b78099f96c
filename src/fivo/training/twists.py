"""Losses that train a twist besides the bound: density-ratio estimation and temporal differences, on simulated data."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo.batch import Batch, Sequence, over_sequences
from fivo.distributions import sample, weight_dtype
from fivo.errors import InputError
from fivo.models import (
    Reading,
    SequenceModel,
    TwistedState,
    extend,
    over_time,
    read,
    simulate,
    start_state,
)
from fivo.training.groups import Update
from fivo.weights import log_mean_exp


class Particle(NamedTuple):
    """h_t and z_t of every step of simulated trajectories, [batch, time, ...]."""

    states: PyTree
    latents: PyTree


class Simulated(NamedTuple):
    """Sequences drawn from the model, the particles that made them, and independent ones that did not."""

    batch: Batch
    own: Particle
    other: Particle


def density_ratio(
    optimizer: optax.GradientTransformation,
    *,
    repeats: int = 1,
    copies: int = 1,
    where: Callable[[Any], Any] = lambda model: model.twisting,
    name: str = "twist",
) -> Update:
    """SIXO-DRE: logistic regression that tells (z_t, x_t+1:T) of one trajectory from z_t of another.

    Its optimum is log r_t = log p(x_t+1:T | z_t, history) - log p(x_t+1:T): the best twist, up to a factor that filters
    do not see (Lawson et al. 2022).

    Args:
        optimizer: an optax transformation for the twist's parameters.
        repeats: steps of it after each step of the bound.
        copies: pairs of trajectories simulated for each sequence of a batch, whose lengths, missing entries and inputs
            they have.
        where: the twist's parameters in the model.
        name: of the group of parameters.

    Returns:
        An update for `fit(..., updates=(density_ratio(optax.adam(1e-3)),))`; the twist no longer follows the bound.
    """
    return Update(name, where, density_ratio_loss, optimizer, data=_simulation(copies), repeats=repeats)


def temporal_difference(
    optimizer: optax.GradientTransformation,
    *,
    num_draws: int = 16,
    repeats: int = 1,
    copies: int = 1,
    where: Callable[[Any], Any] = lambda model: model.twisting,
    name: str = "twist",
) -> Update:
    """FIVO-AUX: log r_t(z_t) regressed on log g_t+1 + log r_t+1 one step further along simulated trajectories.

    The target is averaged over draws of z_t+1 from the prior: log mean exp, which with one draw is the plain temporal
    difference and with many the recursion r_t(z_t) = E[g_t+1 r_t+1 | z_t] itself.

    Args:
        optimizer: an optax transformation for the twist's parameters.
        num_draws: of z_t+1 for each target.
        repeats: steps of it after each step of the bound.
        copies: trajectories simulated for each sequence of a batch.
        where: the twist's parameters in the model.
        name: of the group of parameters.

    Returns:
        An update for `fit(..., updates=...)`; the twist no longer follows the bound.
    """
    if not isinstance(num_draws, int) or num_draws < 1:
        raise InputError(f"num_draws must be a positive integer, got {num_draws!r:.60}.")

    def loss(model: SequenceModel, data: Simulated, *, key: Key[Array, ""]) -> Float[Array, ""]:
        return temporal_difference_loss(model, data, key=key, num_draws=num_draws)

    return Update(name, where, loss, optimizer, data=_simulation(copies), repeats=repeats)


def density_ratio_loss(model: SequenceModel, data: Simulated, *, key: Key[Array, ""]) -> Float[Array, ""]:
    """The logistic loss per step of telling own particles from others by log r_t.

    Args:
        model: a model with a twist.
        data: simulated sequences and particles.
        key: not used.
    """

    def one(sequence: Sequence, own: Particle, other: Particle) -> tuple[Float[Array, " time"], Bool[Array, " time"]]:
        reading = read(model, sequence, twisted=True)
        losses = jax.nn.softplus(-_log_twists(model, reading, own)) + jax.nn.softplus(
            _log_twists(model, reading, other)
        )
        return losses, _before_last(reading)

    return _mean(*over_sequences(one, data.batch, data.own, data.other))


def temporal_difference_loss(
    model: SequenceModel, data: Simulated, *, key: Key[Array, ""], num_draws: int = 16
) -> Float[Array, ""]:
    """The mean square of log r_t - log mean exp(log g_t+1 + log r_t+1), whose second part is held.

    Args:
        model: a model with a twist.
        data: simulated sequences and particles.
        key: a random key.
        num_draws: of z_t+1.
    """
    dtype = weight_dtype(model)

    def one(
        sequence: Sequence, own: Particle, key: Key[Array, ""]
    ) -> tuple[Float[Array, " time"], Bool[Array, " time"]]:
        reading = read(model, sequence, twisted=True)
        later = jax.tree.map(lambda leaf: leaf[1:], (own.states, reading.frames))

        def target(key: Key[Array, ""], state: PyTree, frame: Any) -> Float[Array, ""]:
            def drawn(key: Key[Array, ""]) -> Float[Array, ""]:
                before = TwistedState(state, jnp.zeros((), dtype))
                made = extend(model, before, frame, lambda q: sample(q, key, dtype), propose=lambda h, e, prior: prior)
                return made.log_likelihood

            return log_mean_exp(jax.vmap(drawn)(jax.random.split(key, num_draws)))

        keys = jax.random.split(key, later[1].x.shape[0])
        targets = jax.lax.stop_gradient(jax.vmap(target)(keys, *later))
        losses = (_log_twists(model, reading, own)[:-1] - targets) ** 2
        return losses, _before_last(reading)[:-1]

    keys = jax.random.split(key, data.batch.lengths.shape[0])
    return _mean(*over_sequences(one, data.batch, data.own, keys))


def simulated_pairs(model: SequenceModel, batch: Batch, *, key: Key[Array, ""], copies: int = 1) -> Simulated:
    """Trajectories with the lengths, missing entries and inputs of a batch, and independent ones to compare them with.

    Args:
        model: the model.
        batch: the batch.
        key: a random key.
        copies: of every sequence.
    """
    batch = jax.tree.map(lambda leaf: jnp.repeat(leaf, copies, axis=0), batch)
    num_sequences, time = batch.observations.shape[:2]

    def one(sequence: Sequence, key: Key[Array, ""]) -> tuple[Array, Particle, Particle]:
        own, other = (simulate(model, time, key=k, inputs=sequence.inputs) for k in jax.random.split(key))
        particles = []
        for drawn in (own, other):
            seen = Sequence(drawn.observations, sequence.length, sequence.mask, sequence.inputs)
            particles.append(Particle(_states(model, read(model, seen), drawn.latents), drawn.latents))
        return own.observations, *particles

    keys = jax.random.split(key, num_sequences)
    observations, own, other = over_sequences(one, batch, keys)
    return Simulated(Batch(observations, batch.lengths, batch.mask, batch.inputs), own, other)


def _simulation(copies: int) -> Callable[..., Simulated]:
    if not isinstance(copies, int) or copies < 1:
        raise InputError(f"copies must be a positive integer, got {copies!r:.60}.")
    return lambda model, batch, *, key: simulated_pairs(model, batch, key=key, copies=copies)


def _states(model: SequenceModel, reading: Reading, latents: PyTree) -> PyTree:
    """h_t of every step of a trajectory, [time, ...]."""

    def step(state: PyTree, inputs: tuple, first: bool) -> tuple[PyTree, PyTree]:
        latent, history = inputs
        return model.advance(state, latent, history), state

    return over_time(model, step, start_state(model, reading.first_context), (latents, reading.frames.history))[1]


def _log_twists(model: SequenceModel, reading: Reading, particle: Particle) -> Float[Array, " time"]:
    ahead = reading.frames.ahead
    if ahead is None:
        raise InputError(f"{type(model).__name__} must have a twist to train one.")
    return jax.vmap(model.twist)(particle.states, particle.latents, ahead.future)


def _before_last(reading: Reading) -> Bool[Array, " time"]:
    """Steps that have a future; at the last one r_T = 1."""
    return jnp.arange(reading.frames.x.shape[0]) < reading.length - 1


def _mean(losses: Float[Array, "batch time"], counted: Bool[Array, "batch time"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(counted, losses, 0)) / jnp.maximum(jnp.sum(counted), 1)
