"""One pass over rows: what each was expected to be before it was seen, how likely it was, and the state after it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from fivo.batch import Batch, Sequence, as_batch, over_sequences
from fivo.distributions import observation_log_prob, sample, weight_dtype
from fivo.models import SequenceModel, has_initial_prior
from fivo.smc import FilterState, ParticleFilter, initial_particles, sequence_keys
from fivo.weights import log_sum_exp

TAIL = 10
"""Of the drawn rows, the least likely ones that the tail beyond all is fitted to."""


class Rows(NamedTuple):
    """What a filter says of every row, [batch, time, ...]; past a sequence's end everything is zero."""

    log_likelihood: Float[Array, "batch time"]
    """log p̂(x_t | x_<t)."""
    mean: Float[Array, "batch time dim"]
    """The expected x_t before it was seen."""
    quantiles: Float[Array, "batch time quantile dim"]
    """Quantiles of x_t before it was seen."""
    surprise: Float[Array, "batch time"]
    """A p-value: how often a row drawn from the prediction would have been less likely than x_t; uniform for rows that
    come from the model itself, ties broken at random. 1 for rows that are missing."""
    state_mean: Float[Array, "batch time latent"]
    """The mean of the latents given x_1:t, all parts of them side by side."""
    state_quantiles: Float[Array, "batch time quantile latent"]
    ess: Float[Array, "batch time"]


def filter_rows(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Any,
    *,
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9),
    num_samples: int = 100,
    key: Key[Array, "*batch"],
) -> Rows:
    """Filter sequences row by row, predicting every row before it is seen.

    Args:
        pf: The filter.
        model: A model whose proposal reads no future frames.
        batch: A `Batch`, or what can be made one.
        quantiles: Which quantiles to return.
        num_samples: Draws of each prediction.
        key: One random key, or one for each sequence.

    Returns:
        For every row its log-likelihood, prediction and surprise, and the latent state after it.
    """
    batch = as_batch(batch)
    keys = sequence_keys(key, batch.lengths.shape[0])
    return _rows(pf, model, batch, keys, tuple(quantiles), num_samples)


@eqx.filter_jit
def _rows(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Batch,
    keys: Key[Array, " batch"],
    quantiles: tuple[float, ...],
    num_samples: int,
) -> Rows:
    dtype = weight_dtype(model)
    levels = jnp.asarray(quantiles, dtype)

    def one(sequence: Sequence, key: Key[Array, ""]) -> Rows:
        start = pf.init(model, key=key)
        active = jnp.arange(sequence.observations.shape[0]) < sequence.length

        def step(state: FilterState, now: tuple) -> tuple[FilterState, Rows]:
            x, mask, u, is_active = now
            draw_key, tie_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 0x5EED), state.step))
            drawn = predict_next(pf, model, state, u, num_samples, key=draw_key)
            following, info = pf.step(model, state, x, mask=mask, inputs=u)
            rows = Rows(
                log_likelihood=info.log_increment,
                mean=jnp.mean(drawn.x.astype(dtype), axis=0),
                quantiles=jnp.quantile(drawn.x.astype(dtype), levels, axis=0),
                surprise=_surprise(drawn, x, mask, tie_key),
                state_mean=_weighted_mean(info.latents, info.log_weights, dtype),
                state_quantiles=_weighted_quantiles(info.latents, info.log_weights, levels, dtype),
                ess=info.ess,
            )
            rows = jax.tree.map(lambda leaf: jnp.where(is_active, leaf, 0), rows)
            return jax.tree.map(lambda new, old: _where(is_active, new, old), following, state), rows

        inputs = (sequence.observations, sequence.mask, sequence.inputs, active)
        return lax.scan(step, start, inputs)[1]

    return over_sequences(one, batch, keys)


class Drawn(NamedTuple):
    """Rows drawn from a prediction, and what scores rows under it."""

    x: Shaped[Array, "sample dim"]
    score: Any
    """log p̂(x | past) up to what all rows share, as a function of a row and its mask."""


def predict_next(
    pf: ParticleFilter,
    model: SequenceModel,
    state: FilterState,
    inputs: Float[Array, " input"] | None,
    num_samples: int,
    *,
    key: Key[Array, ""],
) -> Drawn:
    """Draw the next row from the particles of a stream, before it is seen."""
    dtype = weight_dtype(model)
    context = model.context_next(state.memory, inputs)
    particle_key, choice_key, row_key = jax.random.split(key, 3)
    particles = state.particles.state
    if jax.tree.leaves(context):
        fresh = initial_particles(model, context, pf.num_particles).state
        particles = jax.tree.map(lambda a, b: _where(state.step == 0, a, b), fresh, particles)

    def latent_of(state: PyTree, key: Key[Array, ""], first: bool) -> PyTree:
        return sample((model.initial_prior if first else model.prior)(state, context), key, dtype)

    def latents_of(states: PyTree, keys: Key[Array, " draw"]) -> PyTree:
        drawn = [
            lambda first=first: jax.vmap(lambda h, k: latent_of(h, k, first))(states, keys) for first in (True, False)
        ]
        return lax.cond(state.step == 0, *drawn) if has_initial_prior(model) else drawn[1]()

    log_weights = state.particles.log_weights
    latents = latents_of(particles, jax.random.split(particle_key, pf.num_particles))
    # Rows have latents of their own: those they are scored with would know them better than the row that comes.
    chosen = jax.random.categorical(choice_key, log_weights, shape=(num_samples,))
    origins = jax.tree.map(lambda leaf: leaf[chosen], particles)
    latent_key, row_key = jax.random.split(row_key)
    own = latents_of(origins, jax.random.split(latent_key, num_samples))

    def row(h: PyTree, z: PyTree, key: Key[Array, ""]) -> Shaped[Array, " dim"]:
        return sample(model.emission(h, z, context), key, dtype)

    def score(x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None) -> Float[Array, ""]:
        each = jax.vmap(lambda h, z: observation_log_prob(model.emission(h, z, context), x, mask))(particles, latents)
        return log_sum_exp(log_weights + each.astype(dtype))

    return Drawn(jax.vmap(row)(origins, own, jax.random.split(row_key, num_samples)), score)


def _surprise(
    drawn: Drawn, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None, key: Key[Array, ""]
) -> Float[Array, ""]:
    """The share of drawn rows that are less likely than x, x itself counted, ties broken at random.

    Where x is less likely than all of them, an exponential tail fitted to the least likely ones says how much less.
    """
    own = drawn.score(x, mask)
    others = jax.vmap(lambda row: drawn.score(row, mask))(drawn.x)
    share = jax.random.uniform(key, dtype=own.dtype)
    less, ties = jnp.sum(others < own), jnp.sum(others == own)
    lowest = jnp.sort(others)[:TAIL]
    spread = jnp.maximum(jnp.mean(lowest[-1] - lowest), jnp.finfo(own.dtype).tiny)
    beyond = jnp.exp(-jnp.maximum(lowest[0] - own, 0) / spread)
    value = jnp.where(less + ties == 0, beyond, less + share * (ties + 1)) / (others.shape[0] + 1)
    seen = jnp.asarray(True) if mask is None else jnp.any(mask)
    return jnp.where(seen, value.astype(own.dtype), 1)


def _flat(latents: PyTree, dtype: Any) -> Float[Array, "particle latent"]:
    leaves = [leaf.reshape(leaf.shape[0], -1).astype(dtype) for leaf in jax.tree.leaves(latents)]
    return jnp.concatenate(leaves, axis=1)


def _weighted_mean(latents: PyTree, log_weights: Float[Array, " particle"], dtype: Any) -> Float[Array, " latent"]:
    return jnp.exp(log_weights) @ _flat(latents, dtype)


def _weighted_quantiles(
    latents: PyTree, log_weights: Float[Array, " particle"], levels: Float[Array, " quantile"], dtype: Any
) -> Float[Array, "quantile latent"]:
    values = _flat(latents, dtype)
    weights = jnp.exp(log_weights)

    def column(v: Float[Array, " particle"]) -> Float[Array, " quantile"]:
        order = jnp.argsort(v)
        cumulative = jnp.cumsum(weights[order])
        # The middle of each particle's own share of the probability, and a line between them.
        return jnp.interp(levels, cumulative - 0.5 * weights[order], v[order])

    return jax.vmap(column, in_axes=1, out_axes=1)(values)


def _where(flag: Bool[Array, ""], new: Any, old: Any) -> Any:
    if jnp.issubdtype(jnp.asarray(new).dtype, jax.dtypes.prng_key):
        return old  # the key of a stream never changes
    return jnp.where(flag, new, old)
