"""A Gaussian walk whose noise is given with the observations, so that quadrature can go through all of it.

A frame holds the observation and then the noise of every particle; three keys stand for the three ancestries of two
particles after the first step.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo.models import SequenceModel
from fivo.resampling import law_of, multinomial

NUM_PARTICLES = 2
X = (0.7, -0.4)
ANCESTRIES = np.array([[0, 0], [0, 1], [1, 1]])
ORDERS = np.array([1, 2, 1])
"""How many ordered draws give the sorted one."""
KEYS = jax.random.split(jax.random.key(3), len(ANCESTRIES))


# The keys that the filter resamples with after the first step.
RESAMPLING_KEYS = np.asarray(
    jax.random.key_data(jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, 0))[1])(KEYS))
)


class GivenNoise(dist.Normal):
    """A normal whose draws are made of the noise given for the particle that draws."""

    def __init__(self, loc, scale, noise):
        self.noise = noise
        super().__init__(loc, scale)

    def sample(self, key, sample_shape=()):
        particle = jax.random.key_data(key)[-1]  # a particle's key ends in its number
        return self.loc + self.scale * self.noise[particle]


class FirstEntry(dist.Normal):
    """Independent normals of which only the first is an observation."""

    def log_prob(self, value, intermediates=None):
        return jnp.where(jnp.arange(value.shape[-1]) == 0, super().log_prob(value), 0)


class GivenAncestors:
    """The ancestry that a key stands for, under the law of multinomial resampling."""

    def __call__(self, key, log_weights, num_draws):
        chosen = jnp.all(jax.random.key_data(key)[None] == RESAMPLING_KEYS, axis=1)
        return jnp.sum(jnp.where(chosen[:, None], ANCESTRIES, 0), axis=0).astype(jnp.int32)

    def log_law(self, log_weights, ancestors):
        return law_of(multinomial)(log_weights, ancestors)


GIVEN = GivenAncestors()


class Walk(SequenceModel):
    """z_t ~ N(drift z_{t-1}, 1) seen in noise; q moves the prior's mean towards x_t and has a scale of its own."""

    drift: jax.Array
    gain: jax.Array
    log_noise: jax.Array
    pull: jax.Array
    log_scale: jax.Array

    def initial_state(self, context):
        return jnp.asarray(0.3, self.drift.dtype)

    def prior(self, state, context):
        return dist.Normal(self.drift * state, jnp.ones_like(state))

    def proposal(self, state, evidence, prior):
        loc = prior.loc + self.pull * (evidence[0] - self.gain * prior.loc)
        return GivenNoise(loc, jnp.exp(self.log_scale), evidence[1:])

    def emission(self, state, latent, context):
        return FirstEntry(jnp.full(1 + NUM_PARTICLES, self.gain * latent), jnp.exp(self.log_noise))


def walk() -> Walk:
    values = (0.8, 0.9, 0.3, 0.25, -0.1)
    return Walk(*(jnp.asarray(value, jnp.float64) for value in values))


def quadrature(num_nodes: int, num_particles: int = NUM_PARTICLES) -> tuple[fivo.Batch, jax.Array, np.ndarray]:
    """All nodes of the noise with all ancestries: a batch, its keys and the nodes' weights; ancestries inmost."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    grids = np.meshgrid(*[np.arange(num_nodes)] * (len(X) * num_particles), indexing="ij")
    chosen = np.stack([grid.reshape(-1) for grid in grids], axis=1)
    noise = np.zeros((len(chosen), len(X), NUM_PARTICLES))
    noise[..., :num_particles] = nodes[chosen].reshape(len(chosen), len(X), num_particles)
    frames = np.concatenate([np.broadcast_to(np.array(X)[None, :, None], (*noise.shape[:2], 1)), noise], axis=2)
    mass = (weights / weights.sum())[chosen].prod(axis=1)
    size = len(ANCESTRIES)
    observations = jnp.asarray(np.repeat(frames, size, axis=0))
    batch = fivo.Batch(observations, jnp.full(len(observations), len(X), jnp.int32))
    return batch, jnp.tile(KEYS, len(chosen)), np.repeat(mass, size)


def log_evidence(model: Walk, noise: jax.Array, ancestors: np.ndarray | None) -> tuple[jax.Array, jax.Array]:
    """log p̂ of given noise [step, particle], and log w of the ancestors: Algorithm 1 written out for two steps."""
    state, total, log_law = jnp.full(noise.shape[1], 0.3), jnp.zeros(()), jnp.zeros(())
    log_weights = jnp.full(noise.shape[1], -np.log(noise.shape[1]))
    for t, x in enumerate(X):
        mean = model.drift * state
        loc, scale = mean + model.pull * (x - model.gain * mean), jnp.exp(model.log_scale)
        z = loc + scale * noise[t]
        log_weights += dist.Normal(mean, 1.0).log_prob(z) - dist.Normal(loc, scale).log_prob(z)
        log_weights += dist.Normal(model.gain * z, jnp.exp(model.log_noise)).log_prob(x)
        total += jax.nn.logsumexp(log_weights)
        log_weights -= jax.nn.logsumexp(log_weights)
        state = z
        if t == 0 and ancestors is not None:
            log_law = jnp.sum(log_weights[ancestors])
            state, log_weights = z[ancestors], jnp.full(noise.shape[1], -np.log(noise.shape[1]))
    return total, log_law
