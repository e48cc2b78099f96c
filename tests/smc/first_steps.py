"""One model written twice: with an `initial_prior`, and with a flag of the first step in what `encode` returns."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo.models import SequenceModel

KEEP = ("log_weights", "ancestors", "latents")


class Walk(SequenceModel):
    """Two latents that are pulled to what is seen; the first is wider and elsewhere than those that follow."""

    decay: jax.Array
    centre: jax.Array
    log_noise: jax.Array
    pull: jax.Array

    markov: ClassVar[bool] = True

    def first(self):
        return dist.Normal(self.centre, 2.0)

    def later(self, state):
        return dist.Normal(self.decay * state, 0.7)

    def proposal(self, state, evidence, prior):
        return dist.Normal(prior.loc + self.pull * (evidence - prior.loc), 1.1 * prior.scale)

    def emission(self, state, latent, context):
        return dist.Normal(latent, jnp.exp(self.log_noise))


class Split(Walk):
    """The first latent has a distribution of its own."""

    def initial_prior(self, state, context):
        return self.first()

    def prior(self, state, context):
        return self.later(state)


class Flagged(Walk):
    """The first step is known by a flag."""

    def initial_state(self, context):
        return jnp.zeros_like(self.centre)

    def encode(self, sequence):
        x = sequence.observations
        return jnp.arange(len(x)) == 0, x, None

    def begin(self):
        return jnp.zeros((), jnp.int32)

    def context_next(self, memory, inputs):
        return memory == 0

    def encode_next(self, memory, x, mask, inputs):
        return x, None, memory + 1

    def prior(self, state, context):
        first, later = self.first(), self.later(state)
        loc = jnp.where(context, first.loc, later.loc)
        return dist.Normal(loc, jnp.where(context, first.scale, later.scale))


class SplitPlain(Split):
    """Its own prior is the proposal, and it says nothing of its structure."""

    markov: ClassVar[bool] = False

    def proposal(self, state, evidence, prior):
        return prior


class FlaggedPlain(Flagged):
    """Its own prior is the proposal, and it says nothing of its structure."""

    markov: ClassVar[bool] = False

    def proposal(self, state, evidence, prior):
        return prior


PAIRS = {"learned": (Split, Flagged), "bootstrap": (SplitPlain, FlaggedPlain)}


def pair(name: str = "learned") -> tuple[Walk, Walk]:
    """(with an initial prior, with a flag), of equal parameters."""
    values = ([0.8, -0.5], [1.0, -2.0], -0.2, 0.3)
    return tuple(kind(*(jnp.asarray(value, jnp.float64) for value in values)) for kind in PAIRS[name])


def sequences(*lengths: int, missing: bool = True) -> fivo.Batch:
    """Sequences that are padded by a step, some entries missing; a length of zero is one."""
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((max(length, 1), 2)) for length in lengths]
    mask = [rng.random(x.shape) < 0.8 for x in xs] if missing else None
    batch = fivo.Batch.from_sequences(xs, mask=mask, pad_to=max(*lengths, 1) + 1)
    return fivo.Batch(batch.observations, jnp.asarray(lengths, jnp.int32), batch.mask)


def single(length: int) -> fivo.Batch:
    """One sequence, not padded."""
    rng = np.random.default_rng(1)
    return fivo.Batch.from_sequences([rng.standard_normal((length, 2))])
