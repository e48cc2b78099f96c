"""A level that switches between regimes, whose noise and regimes are given with the observations.

So that quadrature can go through all of the noise, and enumeration through all regimes and ancestors. A frame holds the
observation, then the noise and then the regime of every particle; keys stand for the ancestries, as for the walk.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo.distributions import Joint
from fivo.models import SequenceModel
from tests.gradients.walk import ANCESTRIES, KEYS, NUM_PARTICLES, ORDERS, X

REGIMES = np.array(list(itertools.product((0, 1), repeat=len(X) * NUM_PARTICLES))).reshape(-1, len(X), NUM_PARTICLES)


class Given(Joint):
    """A joint distribution whose draws are made of the noise and the regime given for the particle that draws."""

    def __init__(self, noise, regimes, **parts):
        self.noise, self.regimes = noise, regimes
        super().__init__(**parts)

    def sample(self, key, sample_shape=()):
        particle = jax.random.key_data(key)[-1]  # a particle's key ends in its number
        regime = self.regimes[particle].astype(jnp.int32)
        level = self.parts["level"]
        level = level if isinstance(level, dist.Distribution) else level({"regime": regime})
        drawn = {"regime": regime, "level": level.loc + level.scale * self.noise[particle]}
        return {name: drawn[name] for name in self.parts}


class FirstEntry(dist.Normal):
    """Independent normals of which only the first is an observation."""

    def log_prob(self, value, intermediates=None):
        return jnp.where(jnp.arange(value.shape[-1]) == 0, super().log_prob(value), 0)


class Regimes(SequenceModel):
    """The regime is a chain, and the level a walk around the regime's own; q is pulled to x_t and guided by it.

    With `level_first` q draws the level, and then the regime given the level.
    """

    chain: jax.Array
    centres: jax.Array
    drift: jax.Array
    log_noise: jax.Array
    guide: jax.Array
    pull: jax.Array
    log_scale: jax.Array
    level_first: bool = eqx.field(static=True, default=False)

    def initial_state(self, context):
        return {"regime": jnp.zeros((), jnp.int32), "level": jnp.asarray(0.3, self.drift.dtype)}

    def prior(self, state, context):
        return Joint(
            regime=dist.CategoricalLogits(self.chain[state["regime"]]),
            level=lambda z: dist.Normal(self.centres[z["regime"]] + self.drift * state["level"], 1.0),
        )

    def proposal(self, state, evidence, prior):
        given = evidence[1 : 1 + NUM_PARTICLES], evidence[1 + NUM_PARTICLES :]
        return Given(*given, **self.parts(state, evidence[0]))

    def parts(self, state, x):
        """The parts of q_t."""
        logits = self.chain[state["regime"]]
        if self.level_first:
            return {
                "level": dist.Normal(self.drift * state["level"] + self.pull * x, jnp.exp(self.log_scale)),
                "regime": lambda z: dist.CategoricalLogits(logits + self.guide * z["level"] * (1 + 0.1 * x)),
            }
        return {
            "regime": dist.CategoricalLogits(logits + self.guide * (x + state["level"])),
            "level": lambda z: dist.Normal(
                self.centres[z["regime"]] + self.drift * state["level"] + self.pull * x, jnp.exp(self.log_scale)
            ),
        }

    def emission(self, state, latent, context):
        loc = latent["level"] * (1 + 0.5 * latent["regime"])
        return FirstEntry(jnp.full(1 + 2 * NUM_PARTICLES, loc), jnp.exp(self.log_noise))


def regimes(level_first: bool = False) -> Regimes:
    values = ([[0.4, -0.2], [-0.3, 0.5]], [-0.5, 0.7], 0.6, 0.2, [0.3, -0.4], 0.25, -0.1)
    return Regimes(*(jnp.asarray(value, jnp.float64) for value in values), level_first=level_first)


def quadrature(num_nodes: int) -> tuple[fivo.Batch, jax.Array, np.ndarray]:
    """All nodes of the noise with all regimes and ancestries: a batch, its keys and the nodes' weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    chosen = np.array(list(itertools.product(range(num_nodes), repeat=len(X) * NUM_PARTICLES)))
    noise = nodes[chosen].reshape(-1, 1, 1, len(X), NUM_PARTICLES)
    mass = (weights / weights.sum())[chosen].prod(axis=1)
    shape = (len(chosen), len(REGIMES), len(ANCESTRIES), len(X))
    frames = np.concatenate(
        [
            np.broadcast_to(np.array(X)[:, None], (*shape, 1)),
            np.broadcast_to(noise, (*shape, NUM_PARTICLES)),
            np.broadcast_to(REGIMES[None, :, None], (*shape, NUM_PARTICLES)),
        ],
        axis=-1,
    ).reshape(-1, len(X), 1 + 2 * NUM_PARTICLES)
    batch = fivo.Batch(jnp.asarray(frames), jnp.full(len(frames), len(X), jnp.int32))
    ancestries = len(chosen) * len(REGIMES)
    return batch, jnp.tile(KEYS, ancestries), np.repeat(mass, len(REGIMES) * len(ANCESTRIES))


def replay(model: Regimes, frames: jax.Array, resampling: bool) -> tuple[jax.Array, jax.Array]:
    """log p̂ of every sequence of a quadrature and the log-probability of its regimes and ancestors.

    Algorithm 1 written out for two steps, without the filter.
    """
    ancestors = jnp.asarray(np.tile(ANCESTRIES, (len(frames) // len(ANCESTRIES), 1)))
    orders = jnp.asarray(np.tile(np.log(ORDERS), len(frames) // len(ANCESTRIES)))

    def one(frames, ancestors, log_orders):
        before = {"regime": jnp.zeros(NUM_PARTICLES, jnp.int32), "level": jnp.full(NUM_PARTICLES, 0.3)}
        log_weights = jnp.full(NUM_PARTICLES, -np.log(NUM_PARTICLES))
        total, log_probability = jnp.zeros(()), jnp.zeros(())
        for t, x in enumerate(X):
            noise, regime = frames[t, 1:3], frames[t, 3:].astype(jnp.int32)
            log_chain = jax.nn.log_softmax(model.chain[before["regime"]], axis=1)
            walk = model.drift * before["level"]
            scale = jnp.exp(model.log_scale)
            centre = model.centres[regime]
            mean = walk + model.pull * x + (0.0 if model.level_first else centre)
            level = mean + scale * noise
            felt = level * (1 + 0.1 * x) if model.level_first else x + before["level"]
            log_guided = jax.nn.log_softmax(log_chain + felt[:, None] * model.guide[None, :], axis=1)
            log_regime = jnp.take_along_axis(log_guided, regime[:, None], axis=1)[:, 0]
            log_prior = jnp.take_along_axis(log_chain, regime[:, None], axis=1)[:, 0]
            log_prior += _log_normal(level, centre + walk, 1.0)
            log_proposal = log_regime + _log_normal(level, mean, scale)
            log_emission = _log_normal(x, level * (1 + 0.5 * regime), jnp.exp(model.log_noise))
            log_weights += log_prior + log_emission - log_proposal
            total += jax.nn.logsumexp(log_weights)
            log_weights -= jax.nn.logsumexp(log_weights)
            log_probability += jnp.sum(log_regime)
            before = {"regime": regime, "level": level}
            if t == 0 and resampling:
                log_probability += log_orders + jnp.sum(log_weights[ancestors])
                before = jax.tree.map(lambda leaf: leaf[ancestors], before)
                log_weights = jnp.full(NUM_PARTICLES, -np.log(NUM_PARTICLES))
            elif t == 0:
                log_probability -= np.log(len(ANCESTRIES))  # which are all one outcome
        return total, log_probability

    return jax.vmap(one)(frames, ancestors, orders)


def _log_normal(x, loc, scale):
    return -0.5 * ((x - loc) / scale) ** 2 - jnp.log(scale) - 0.5 * np.log(2 * np.pi)
