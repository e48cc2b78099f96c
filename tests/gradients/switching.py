"""A model of a user's own whose latents are of both kinds, drawn together by a distribution that does not say so."""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

import fivo


class Regime(dist.Distribution):
    """A regime and a level, drawn together, as a user would write it: it declares no support."""

    def __init__(self, logits, loc):
        self.logits, self.loc = logits, loc
        super().__init__((), ())

    def sample(self, key, sample_shape=()):
        first, second = jax.random.split(key)
        return jax.random.categorical(first, self.logits), self.loc + jax.random.normal(second)

    def log_prob(self, value, intermediates=None):
        regime, level = value
        return jax.nn.log_softmax(self.logits)[regime] + dist.Normal(self.loc, 1.0).log_prob(level)


class Switching(fivo.models.SequenceModel):
    """x_t around a level whose scale is the regime's."""

    logits: jax.Array
    scales: jax.Array

    def initial_state(self, context):
        return jnp.zeros(())

    def prior(self, state, context):
        return Regime(self.logits, state)

    def emission(self, state, latent, context):
        regime, level = latent
        return dist.Normal(level[None], self.scales[regime][None])

    def advance(self, state, latent, history):
        return latent[1]
