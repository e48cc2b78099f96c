"""Latents and missing entries given whole sequences: exact, by backward simulation, or by conditional SMC."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree
from scipy.special import ndtri

from fivo.batch import Batch, as_batch
from fivo.distributions import sample, weight_dtype
from fivo.models import LinearGaussian, Reading, SequenceModel, over_time, read_batch, start_state
from fivo.smc import ParticleFilter, backward_simulate, particle_gibbs, sequence_keys

SWEEPS = 5
"""Rounds of particle Gibbs, from a trajectory of the filter."""


class Trajectories(NamedTuple):
    """Trajectories given whole sequences, equally weighted."""

    latents: PyTree
    """z [batch, time, trajectory, ...]."""
    distinct: Int[Array, "batch time"]
    """How many different latents there are among the trajectories at each step: few at early steps say that the
    particles of the filter were too few."""


def smooth_rows(
    pf: ParticleFilter, model: SequenceModel, batch: Any, *, num_trajectories: int = 100, key: Key[Array, "*batch"]
) -> Trajectories:
    """Draw trajectories of latents given whole sequences.

    Args:
        pf: The filter.
        model: The model; where its latents are a Markov chain they are drawn by backward simulation, elsewhere by
            particle Gibbs.
        batch: A `Batch`, or what can be made one.
        num_trajectories: How many for each sequence.
        key: One random key, or one for each sequence.
    """
    batch = as_batch(batch)
    keys = sequence_keys(key, batch.lengths.shape[0])
    first, second = jax.vmap(jax.random.split, out_axes=1)(keys)
    if model.markov:
        seen = pf(model, batch, key=first, keep=("log_weights", "ancestors", "latents"))
        latents = backward_simulate(model, batch, seen, num_trajectories=num_trajectories, key=second)
    else:
        latents = _by_gibbs(pf, model, batch, num_trajectories, first[0])
    return Trajectories(latents, _distinct(latents))


def impute_rows(
    pf: ParticleFilter, model: SequenceModel, batch: Any, *, num_samples: int = 100, key: Key[Array, "*batch"]
) -> tuple[Float[np.ndarray, "batch sample time dim"], Int[np.ndarray, "batch time"]]:
    """Draw the missing entries of sequences given everything that was observed, later rows included.

    Args:
        pf: The filter.
        model: The model; of a `LinearGaussian` the answer is exact.
        batch: A `Batch` with a mask.
        num_samples: Draws for each sequence.
        key: One random key, or one for each sequence.

    Returns:
        Draws of whole rows, with the observed entries as they are, and the number of different latents among the
        trajectories at each step (`num_samples` where the answer is exact).
    """
    batch = as_batch(batch)
    if isinstance(model.bare, LinearGaussian):
        mean, deviation = _exact_cells(model.bare, batch)
        levels = (np.arange(num_samples) + 0.5) / num_samples
        normal = ndtri(levels)[None, :, None, None]
        samples = np.asarray(mean)[:, None] + np.asarray(deviation)[:, None] * normal
        distinct = np.full(batch.observations.shape[:2], num_samples)
    else:
        keys = sequence_keys(key, batch.lengths.shape[0])
        first, second = jax.vmap(jax.random.split, out_axes=1)(keys)
        smoothed = smooth_rows(pf, model, batch, num_trajectories=num_samples, key=first)
        samples = np.asarray(_emitted(model, batch, smoothed.latents, second))
        distinct = np.asarray(smoothed.distinct)
    if batch.mask is not None:
        samples = np.where(np.asarray(batch.mask)[:, None], np.asarray(batch.observations)[:, None], samples)
    else:
        samples = np.broadcast_to(np.asarray(batch.observations)[:, None], samples.shape)
    return samples, distinct


def _by_gibbs(pf: ParticleFilter, model: SequenceModel, batch: Batch, chains: int, key: Key[Array, ""]) -> PyTree:
    """The last trajectories of independent chains, one for each draw."""
    count = batch.lengths.shape[0]
    copies = jax.tree.map(lambda leaf: jnp.repeat(leaf, chains, axis=0), batch)
    conditional = ParticleFilter(pf.num_particles, "multinomial", pf.criterion)
    swept = particle_gibbs(conditional, model, copies, num_sweeps=SWEEPS, key=key, ancestor_sampling=False)
    last = jax.tree.map(lambda leaf: leaf[-1].reshape(count, chains, *leaf.shape[2:]), swept)
    return jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 1, 2), last)


@eqx.filter_jit
def _emitted(
    model: SequenceModel, batch: Batch, latents: PyTree, keys: Key[Array, " batch"]
) -> Float[Array, "batch sample time dim"]:
    """Rows drawn around trajectories of latents."""
    dtype = weight_dtype(model)

    def one(reading: Reading, latents: PyTree, key: Key[Array, ""]) -> Array:
        first = start_state(model, reading.first_context)
        num = jax.tree.leaves(latents)[0].shape[1]

        def trajectory(z: PyTree, key: Key[Array, ""]) -> Array:
            def step(state: PyTree, now: tuple, first: bool) -> tuple[PyTree, Array]:
                latent, frame, key = now
                x = sample(model.emission(state, latent, frame.context), key, dtype)
                return model.advance(state, latent, frame.history), x

            keys = jax.random.split(key, reading.frames.x.shape[0])
            return over_time(model, step, first, (z, reading.frames, keys))[1]

        return jax.vmap(trajectory, in_axes=(1, 0))(latents, jax.random.split(key, num))

    return jax.vmap(one)(read_batch(model, batch), latents, keys)


@eqx.filter_jit
def _exact_cells(model: LinearGaussian, batch: Batch) -> tuple[Array, Array]:
    """Mean and standard deviation of every entry given all that was observed, [batch, time, dim]."""
    moments = model.smoothed(batch)
    c, r = model.emission_matrix, model.emission_covariance
    dim = c.shape[0]

    def cell(
        mean: Array, covariance: Array, x: Array, mask: Bool[Array, " dim"] | None, u: Array | None
    ) -> tuple[Array, Array]:
        offset = jnp.zeros(dim, c.dtype)
        if model.emission_input_matrix is not None and u is not None:
            offset = model.emission_input_matrix @ u
        if mask is None:
            return x.astype(c.dtype), jnp.zeros(dim, c.dtype)
        # x_m = C_m z + noise whose part that the observed entries tell is G (x_o - C_o z).
        seen = jnp.where(mask[:, None] & mask[None, :], r, jnp.eye(dim, dtype=c.dtype))
        across = jnp.where(~mask[:, None] & mask[None, :], r, 0)
        gain = jnp.linalg.solve(seen, across.T).T
        by_latent = jnp.where(mask[:, None], 0, c - gain @ jnp.where(mask[:, None], c, 0))
        rest = jnp.where(mask, x.astype(c.dtype) - offset, 0)
        expected = offset + by_latent @ mean + gain @ rest
        left = jnp.where(~mask[:, None] & ~mask[None, :], r - gain @ across.T, 0)
        variance = jnp.diag(by_latent @ covariance @ by_latent.T + left)
        return jnp.where(mask, x.astype(c.dtype), expected), jnp.sqrt(jnp.maximum(jnp.where(mask, 0, variance), 0))

    inner = jax.vmap(cell, in_axes=(0, 0, 0, None if batch.mask is None else 0, None if batch.inputs is None else 0))
    outer = jax.vmap(inner, in_axes=(0, 0, 0, None if batch.mask is None else 0, None if batch.inputs is None else 0))
    return outer(moments.means, moments.covariances, batch.observations, batch.mask, batch.inputs)


@jax.jit
def _distinct(latents: PyTree) -> Int[Array, "batch time"]:
    """How many of the trajectories differ at each step."""
    leaf = jax.tree.leaves(latents)[0]
    flat = leaf.reshape(*leaf.shape[:3], -1)
    same = jnp.all(flat[:, :, :, None] == flat[:, :, None], axis=-1)
    earlier = jnp.tril(jnp.ones(same.shape[-2:], bool), -1)
    return jnp.sum(~jnp.any(same & jnp.broadcast_to(earlier, same.shape), axis=-1), axis=-1)
