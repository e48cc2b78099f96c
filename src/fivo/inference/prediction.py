"""The row that comes next, drawn before it is seen, and how surprising the one that came is."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from fivo.distributions import observation_log_prob, sample, weight_dtype
from fivo.models import SequenceModel, has_initial_prior
from fivo.smc import FilterState, ParticleFilter, initial_particles
from fivo.weights import log_sum_exp

TAIL = 10
"""Of the drawn rows, the least likely ones that the tail beyond all is fitted to."""


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
        particles = jax.tree.map(lambda a, b: jnp.where(state.step == 0, a, b), fresh, particles)

    def latent_of(state: PyTree, key: Key[Array, ""], first: bool) -> PyTree:
        return sample((model.initial_prior if first else model.prior)(state, context), key, dtype)

    def latents_of(states: PyTree, keys: Key[Array, " draw"]) -> PyTree:
        drawn = [
            lambda first=first: jax.vmap(lambda h, k: latent_of(h, k, first))(states, keys) for first in (True, False)
        ]
        return lax.cond(state.step == 0, *drawn) if has_initial_prior(model) else drawn[1]()

    log_weights = state.particles.log_weights
    latents = latents_of(particles, jax.random.split(particle_key, pf.num_particles))
    # Predictions need fresh latents: those that a row was scored with have already seen it.
    cumulative = jnp.cumsum(jnp.exp(log_weights))
    uniform = jax.random.uniform(choice_key, (num_samples,), dtype) * cumulative[-1]
    chosen = jnp.minimum(jnp.searchsorted(cumulative, uniform, side="right"), pf.num_particles - 1)
    origins = jax.tree.map(lambda leaf: leaf[chosen], particles)
    latent_key, row_key = jax.random.split(row_key)
    own = latents_of(origins, jax.random.split(latent_key, num_samples))

    def row(h: PyTree, z: PyTree, key: Key[Array, ""]) -> Shaped[Array, " dim"]:
        return sample(model.emission(h, z, context), key, dtype)

    def score(x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None) -> Float[Array, ""]:
        each = jax.vmap(lambda h, z: observation_log_prob(model.emission(h, z, context), x, mask))(particles, latents)
        return log_sum_exp(log_weights + each.astype(dtype))

    return Drawn(jax.vmap(row)(origins, own, jax.random.split(row_key, num_samples)), score)


def surprise_of(
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
