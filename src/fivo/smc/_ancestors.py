"""How well given latents continue a particle: the weights of ancestor sampling and of backward simulation."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from fivo.distributions import log_prob
from fivo.models import Reading, SequenceModel, extend


def log_continuation(
    model: SequenceModel, reading: Reading, latents: PyTree, states: PyTree, step: Int[Array, ""]
) -> Float[Array, " particle"]:
    """log p(z_t+1:T, x_t+1:T | particle) of given latents [time, ...] for states h_t+1, up to a common constant.

    Where latents are Markov only p(z_t+1 | z_t) differs between particles.
    """
    frames = reading.frames._replace(ahead=None)
    time = frames.x.shape[0]
    if model.markov:
        after = jnp.minimum(step + 1, time - 1)
        latent, context = jax.tree.map(lambda leaf: leaf[after], (latents, frames.context))
        scores = jax.vmap(lambda state: log_prob(model.prior(state, context), latent))(states)
        return jnp.where(step + 1 < reading.length, scores, 0)

    def one(state: PyTree) -> Float[Array, ""]:
        def follow(state: PyTree, inputs: tuple) -> tuple[PyTree, Float[Array, ""]]:
            t, latent, frame = inputs
            made = extend(model, state, frame, lambda _: latent)
            score = log_prob(made.prior, latent) + made.log_likelihood
            later = t > step
            state = jax.tree.map(lambda new, old: jnp.where(later, new, old), made.state, state)
            return state, jnp.where(later & (t < reading.length), score, 0)

        return jnp.sum(lax.scan(follow, state, (jnp.arange(time), latents, frames))[1])

    return jax.vmap(one)(states)
