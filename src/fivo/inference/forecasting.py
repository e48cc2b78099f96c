"""Forecasts: the rows after the last, drawn from the particles that have seen all before."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from fivo.batch import Batch, Sequence, as_batch, over_sequences
from fivo.devices.mesh import spread
from fivo.distributions import weight_dtype
from fivo.errors import InputError
from fivo.models import Generator, LinearGaussian, SequenceModel, check_inputs, check_streams, simulate
from fivo.smc import ParticleFilter, Particles, sequence_keys


def forecast_rows(
    model: SequenceModel,
    batch: Any,
    horizon: int,
    *,
    inputs: Any = None,
    num_samples: int = 200,
    num_particles: int = 200,
    key: Key[Array, "*batch"],
    mesh: Mesh | None = None,
) -> Float[np.ndarray, "sequence sample horizon dim"]:
    """Draw what follows every sequence of a batch.

    Args:
        model: A model whose `encode_next` reads one frame at a time; its proposal may read future frames.
        batch: The sequences so far: a `Batch`, or what can be made one. Each has at least one row.
        horizon: How many rows to draw.
        inputs: The inputs of those rows [sequence, horizon, input], for models that read inputs.
        num_samples: Draws for each sequence.
        num_particles: Of the filter that reads the sequences so far; a `LinearGaussian` reads them exactly.
        key: One random key, or one for each sequence.
        mesh: Devices that share out the sequences, whose number must be a multiple of theirs.
    """
    batch = as_batch(batch)
    check_streams(model)
    if not isinstance(horizon, int) or horizon < 1:
        raise InputError(f"horizon must be a positive integer, got {horizon!r:.60}.")
    if int(np.min(np.asarray(batch.lengths))) < 1:
        raise InputError("every sequence must have at least one row to go on from.")
    count = batch.lengths.shape[0]
    width = 0 if inputs is None else np.shape(inputs)[-1]
    check_inputs(model, width)
    if inputs is not None and np.shape(inputs)[:2] != (count, horizon):
        raise InputError(
            f"inputs must have shape ({count}, {horizon}, number of inputs), one for every row that is drawn, got "
            f"{np.shape(inputs)}."
        )
    future = None if inputs is None else jnp.asarray(inputs, weight_dtype(model))
    keys = sequence_keys(key, count)
    drawn = _drawn_at_once if mesh is None else _drawn
    samples, alive = spread(drawn, mesh, (model, horizon, num_samples, num_particles), batch, future, keys)
    dead = ~np.asarray(alive)
    if dead.any():
        raise InputError(f"sequence {int(np.argmax(dead))} is impossible under this model; check its values and scale.")
    return np.asarray(samples)


def _drawn(
    drawing: tuple[SequenceModel, int, int, int],
    batch: Batch,
    future: Float[Array, "batch horizon input"] | None,
    keys: Key[Array, " batch"],
) -> tuple[Shaped[Array, "batch sample horizon dim"], Bool[Array, " batch"]]:
    model, horizon, num_samples, num_particles = drawing
    return draw_rows(model, batch, horizon, future, keys, num_samples, num_particles)


_drawn_at_once = eqx.filter_jit(_drawn)
"""Filter and draws as one compiled program, for each shape of a batch."""


def draw_rows(
    model: SequenceModel,
    batch: Batch,
    horizon: int,
    future: Float[Array, "batch horizon input"] | None,
    keys: Key[Array, " batch"],
    num_samples: int,
    num_particles: int,
) -> tuple[Shaped[Array, "batch sample horizon dim"], Bool[Array, " batch"]]:
    """The draws of `forecast_rows` as a function that JAX can trace, and which sequences are possible."""
    filter_keys, draw_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
    if isinstance(model, LinearGaussian):
        states = _exact_states(model, batch, filter_keys, num_samples)
        drawn = _continue(model, batch, states, future, draw_keys, horizon)
        return drawn, jnp.ones(batch.lengths.shape, bool)
    seen = ParticleFilter(num_particles, "systematic")(model, batch, key=filter_keys)
    choice_keys, draw_keys = jax.vmap(jax.random.split, out_axes=1)(draw_keys)
    states = _chosen_states(seen.particles, choice_keys, num_samples)
    return _continue(model, batch, states, future, draw_keys, horizon), seen.alive


@eqx.filter_jit
def _exact_states(
    model: LinearGaussian, batch: Batch, keys: Key[Array, " batch"], num_samples: int
) -> Float[Array, "batch sample state"]:
    """States after the last rows, A z with z drawn from its exact law given them."""
    moments = model.filtered(batch)
    at = jnp.arange(batch.lengths.shape[0]), batch.lengths - 1

    def one(mean: Array, covariance: Array, key: Key[Array, ""]) -> Array:
        values, vectors = jnp.linalg.eigh(covariance)  # of a covariance that rounding may have made singular
        half = vectors * jnp.sqrt(jnp.maximum(values, 0))[None]
        z = mean[None] + jax.random.normal(key, (num_samples, mean.shape[0]), mean.dtype) @ half.T
        return z @ model.transition_matrix.T

    return jax.vmap(one)(moments.means[at], moments.covariances[at], keys)


@eqx.filter_jit
def _continue(
    model: SequenceModel,
    batch: Batch,
    states: PyTree,
    inputs: Float[Array, "batch horizon input"] | None,
    keys: Key[Array, " batch"],
    horizon: int,
) -> Shaped[Array, "batch sample horizon dim"]:
    """One continuation of every state."""

    def one(sequence: Sequence, states: PyTree, u: Float[Array, "horizon input"] | None, key: Key[Array, ""]):
        memory = memory_after(model, sequence)

        def draw(state: PyTree, key: Key[Array, ""]) -> Shaped[Array, "horizon dim"]:
            return simulate(model, horizon, key=key, inputs=u, start=Generator(state, memory)).observations

        return jax.vmap(draw)(states, jax.random.split(key, jax.tree.leaves(states)[0].shape[0]))

    return over_sequences(one, batch, states, inputs, keys)


@eqx.filter_jit
def _chosen_states(particles: Particles, keys: Key[Array, " batch"], num_samples: int) -> PyTree:
    """States [batch, sample, ...] of particles, each as often as its weight says."""

    def one(particles: Particles, key: Key[Array, ""]) -> PyTree:
        # Evenly spread over the particles: less noise than independent choices, and no less right.
        offsets = (jnp.arange(num_samples) + jax.random.uniform(key)) / num_samples
        cumulative = jnp.cumsum(jnp.exp(particles.log_weights))
        last = particles.log_weights.shape[0] - 1
        chosen = jnp.minimum(jnp.searchsorted(cumulative, offsets * cumulative[-1]), last)
        return jax.tree.map(lambda leaf: leaf[chosen], particles.state)

    return jax.vmap(one)(particles, keys)


def memory_after(model: SequenceModel, sequence: Sequence) -> PyTree:
    """The model's memory after all frames of a sequence, padding left out."""

    def step(memory: PyTree, now: tuple) -> tuple[PyTree, None]:
        x, mask, u, active = now
        following = model.encode_next(memory, x, mask, u)[2]
        return jax.tree.map(lambda new, old: jnp.where(active, new, old), following, memory), None

    active = jnp.arange(sequence.observations.shape[0]) < sequence.length
    frames = (sequence.observations, sequence.mask, sequence.inputs, active)
    return lax.scan(step, model.begin(), frames)[0]
