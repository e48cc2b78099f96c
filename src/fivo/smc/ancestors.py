"""How well a particle goes on with given latents: the weights of ancestor sampling and of backward simulation."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from fivo.models.contract import SequenceModel, past_pairs
from fivo.models.scoring import log_prob, observation_log_prob
from fivo.smc.whole import Reading


def log_continuation(
    model: SequenceModel, reading: Reading, latents: PyTree, states: PyTree, step: Int[Array, ""]
) -> Float[Array, " particle"]:
    """log p(z_t+1:T, x_t+1:T | particle) of given latents [time, ...] for states h_t+1, up to a common constant.

    Where latents are Markov only p(z_t+1 | z_t) differs between particles.
    """
    now, following = past_pairs(reading.past)
    if model.markov:
        after = jnp.minimum(step + 1, reading.x.shape[0] - 1)
        latent, past = jax.tree.map(lambda leaf: leaf[after], (latents, now))
        scores = jax.vmap(lambda state: log_prob(model.prior(state, past), latent))(states)
        return jnp.where(step + 1 < reading.length, scores, 0)

    def one(state: PyTree) -> Float[Array, ""]:
        def follow(state: PyTree, inputs: tuple) -> tuple[PyTree, Float[Array, ""]]:
            t, latent, x, mask, past, past_next = inputs
            score = log_prob(model.prior(state, past), latent)
            score = score + observation_log_prob(model.emission(state, latent, past), x, mask)
            later = t > step
            moved = model.advance(state, latent, past_next)
            state = jax.tree.map(lambda new, old: jnp.where(later, new, old), moved, state)
            return state, jnp.where(later & (t < reading.length), score, 0)

        steps = jnp.arange(reading.x.shape[0])
        return jnp.sum(lax.scan(follow, state, (steps, latents, reading.x, reading.mask, now, following))[1])

    return jax.vmap(one)(states)
