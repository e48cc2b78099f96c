"""A chain of two states, two symbols and a proposal of its own, small enough to enumerate all that a filter can do."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo import ParticleFilter
from fivo.distributions import Symbols
from fivo.models import SequenceModel
from fivo.resampling import law_of, multinomial
from tests.fast import fast_jit

START = 2
SYMBOLS = np.array([0, 1, 1])


class Chain(SequenceModel):
    """z_t ~ softmax(transition[z_{t-1}]), x_t ~ softmax(emission[z_t]); q adds guide[x_t] to the prior's logits."""

    transition: jax.Array
    emission_table: jax.Array
    guide: jax.Array

    def initial_state(self, context):
        return jnp.full((), START, jnp.int32)

    def prior(self, state, context):
        return dist.CategoricalLogits(self.transition[state])

    def proposal(self, state, evidence, prior):
        return dist.CategoricalLogits(prior.logits + self.guide[evidence[0].astype(jnp.int32)])

    def emission(self, state, latent, context):
        return Symbols(self.emission_table[latent][None, :])

    def advance(self, state, latent, history):
        return latent.astype(jnp.int32)


class TwistedChain(Chain):
    """The chain with log r_t = tilt[z_t, x_t+1]."""

    tilt: jax.Array

    def lookahead(self, sequence):
        x = sequence.observations[:, 0].astype(jnp.int32)
        return jnp.concatenate([x[1:], x[:1]])

    def twist(self, state, latent, future):
        return self.tilt[latent, future]


def twisted_chain() -> TwistedChain:
    plain = chain()
    return TwistedChain(plain.transition, plain.emission_table, plain.guide, tilt=jnp.array([[0.5, -0.4], [-0.2, 0.6]]))


def chain() -> Chain:
    return Chain(
        transition=jnp.array([[0.2, -0.3], [-0.1, 0.4], [0.3, 0.1]]),
        emission_table=jnp.array([[0.3, -0.2], [-0.4, 0.2]]),
        guide=jnp.array([[0.2, -0.1], [-0.3, 0.1]]),
    )


def symbols(num_steps: int) -> fivo.Batch:
    return fivo.Batch.from_sequences([SYMBOLS[:num_steps, None].astype(float)])


def log_likelihood(model: Chain, num_steps: int) -> jax.Array:
    """log p(x) by summing over all latents."""
    x = SYMBOLS[:num_steps]
    paths = []
    for z in itertools.product((0, 1), repeat=len(x)):
        before, total = START, 0.0
        for state, symbol in zip(z, x, strict=True):
            total += jax.nn.log_softmax(model.transition[before])[state]
            total += jax.nn.log_softmax(model.emission_table[state])[symbol]
            before = state
        paths.append(total)
    return jax.nn.logsumexp(jnp.stack(paths))


class Outcomes(NamedTuple):
    """Everything that a filter can draw, each with a key that draws it and its log-probability."""

    keys: jax.Array
    latents: np.ndarray
    ancestors: np.ndarray
    log_probability: np.ndarray

    @property
    def probability(self) -> jax.Array:
        return jnp.exp(jnp.asarray(self.log_probability))


def outcomes(pf: ParticleFilter, batch: fivo.Batch, num_keys: int = 100_000, model: Chain | None = None) -> Outcomes:
    """Found by trying keys; that all were found is checked by their probabilities, which sum to one."""
    model = chain() if model is None else model
    keys = jax.random.split(jax.random.key(0), num_keys)
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, num_keys, axis=0), batch)

    @fast_jit
    def run(keys):
        result = pf(model, many, key=keys, keep=("ancestors", "latents"))
        return result.latents, result.ancestors

    latents, ancestors = map(np.asarray, run(keys))
    flat = np.concatenate([latents.reshape(num_keys, -1), ancestors[:, :-1].reshape(num_keys, -1)], axis=1)
    _, first = np.unique(flat, axis=0, return_index=True)
    latents, ancestors = latents[first], ancestors[first]
    _, log_probability = replay(model, pf, latents, ancestors)
    np.testing.assert_allclose(np.exp(log_probability).sum(), 1, atol=1e-9)
    return Outcomes(keys[first], latents, ancestors, np.asarray(log_probability))


def replay(model: Chain, pf: ParticleFilter, latents: np.ndarray, ancestors: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """log p̂ and the log-probability of given draws, [outcome]: Algorithm 1 written out, without the filter."""
    x = SYMBOLS[: latents.shape[1]]
    rows = np.arange(len(latents))[:, None]
    num_particles = latents.shape[2]
    transition, emission = jax.nn.log_softmax(model.transition), jax.nn.log_softmax(model.emission_table)
    before = np.full(latents.shape[::2], START)
    log_weights = jnp.full(latents.shape[::2], -np.log(num_particles))
    log_evidence, log_probability = jnp.zeros(len(latents)), jnp.zeros(len(latents))
    log_twist = jnp.zeros(before.shape)
    for t, symbol in enumerate(x):
        now = latents[:, t]
        guide = jnp.broadcast_to(model.guide[symbol], (*now.shape, 2))
        log_q = jax.nn.log_softmax(model.transition[before] + guide)
        log_q = jnp.take_along_axis(log_q, now[..., None], axis=2)[..., 0]
        log_probability += log_q.sum(axis=1)
        log_weights = log_weights + transition[before, now] + emission[now, symbol] - log_q
        if isinstance(model, TwistedChain):
            ahead = model.tilt[now, x[t + 1]] if t < len(x) - 1 else jnp.zeros(now.shape)
            log_weights, log_twist = log_weights + ahead - log_twist, ahead
        log_total = jax.nn.logsumexp(log_weights, axis=1)
        log_evidence += log_total
        log_weights = log_weights - log_total[:, None]
        before = now
        if t < len(x) - 1 and t in getattr(pf.criterion, "steps", ()):
            log_probability += _log_law(pf, log_weights, ancestors[:, t])
            before, log_twist = now[rows, ancestors[:, t]], log_twist[rows, ancestors[:, t]]
            log_weights = jnp.full(now.shape, -np.log(num_particles))
    return log_evidence, log_probability


def _log_law(pf: ParticleFilter, log_weights: jax.Array, ancestors: np.ndarray) -> jax.Array:
    """Of sorted independent draws by its definition, of other schemes by the law that other tests check."""
    if pf.scheme is not multinomial:
        return jax.vmap(law_of(pf.scheme))(log_weights, ancestors).sum(axis=1)
    counts = (ancestors[:, :, None] == np.arange(ancestors.shape[1])).sum(axis=1)
    factorial = np.array([1, 1, 2, 6])
    orders = factorial[ancestors.shape[1]] / factorial[counts].prod(axis=1)
    return jnp.sum(counts * log_weights, axis=1) + np.log(orders)
