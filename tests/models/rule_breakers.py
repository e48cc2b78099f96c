"""Models that break a rule of the contract, one each."""

import jax.numpy as jnp
from jax import lax

from fivo.errors import InputError
from fivo.models import LinearGaussian


class Peeking(LinearGaussian):
    """The mean of z_t moves with x_t."""

    def encode(self, sequence):
        _, evidence, history = super().encode(sequence)
        return sequence.observations, evidence, history

    def prior(self, state, context):
        return super().prior(state + context[0], None)


class Foreseeing(LinearGaussian):
    """The state after step t moves with x_{t+1}."""

    def encode(self, sequence):
        context, evidence, _ = super().encode(sequence)
        return context, evidence, jnp.roll(sequence.observations, -1, axis=0)

    def advance(self, state, latent, history):
        return super().advance(state, latent, None) + history[0]


class Clairvoyant(LinearGaussian):
    """The proposal of step t reads x_{t+1} and says that it does not."""

    def encode(self, sequence):
        context, _, history = super().encode(sequence)
        return context, jnp.roll(sequence.observations, -1, axis=0), history


class Forgetful(LinearGaussian):
    """It counts the steps, but one frame at a time it never leaves the first."""

    def encode(self, sequence):
        _, evidence, history = super().encode(sequence)
        return jnp.arange(len(sequence.observations)), evidence, history

    def begin(self):
        return jnp.zeros((), int)

    def context_next(self, memory, inputs):
        return memory

    def encode_next(self, memory, x, mask, inputs):
        evidence, history, _ = super().encode_next(memory, x, mask, inputs)
        return evidence, history, self.begin()


class Sealed(LinearGaussian):
    """Its parameters get no gradient."""

    def advance(self, state, latent, history):
        return lax.stop_gradient(super().advance(state, latent, history))


class Widening(LinearGaussian):
    """Always goes on in double precision."""

    def advance(self, state, latent, history):
        return super().advance(state, latent, history).astype(jnp.float64)


class Babbling(LinearGaussian):
    """Refuses in two sentences."""

    def encode(self, sequence):
        raise InputError("These frames have 6 entries. That is wrong.")


class Curious(LinearGaussian):
    """The mean of z_t moves with x_{t-1}, missing or not."""

    def encode(self, sequence):
        x = sequence.observations
        _, evidence, history = super().encode(sequence)
        # What is missing has been made zero: only what was there before would tell.
        return jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]]), evidence, history

    def begin(self):
        return jnp.zeros(self.emission_matrix.shape[0], self.initial_mean.dtype)

    def context_next(self, memory, inputs):
        return memory

    def encode_next(self, memory, x, mask, inputs):
        evidence, history, _ = super().encode_next((), x, mask, inputs)
        return evidence, history, x

    def prior(self, state, context):
        return super().prior(state + context[0], None)
