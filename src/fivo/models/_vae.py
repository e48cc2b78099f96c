"""The variational auto-encoder (Kingma and Welling 2014; Rezende, Mohamed and Wierstra 2014)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Key

from fivo.errors import InputError
from fivo.models._emissions import LATENT_SHIFT, Emission, diagonal_normal
from fivo.models._latent_variable import LatentVariableModel
from fivo.models._layers import MLP


class VAE(LatentVariableModel):
    """z ~ N(0, I), x ~ emission(MLP(z)) and q(z | x) = N from MLP(x).

    Args:
        emission: what x is, such as `BernoulliEmission(train_mean)`.
        num_latents: the dimension of z.
        hidden: units of both networks.
        key: a random key for the initial weights.
    """

    encoder: MLP
    decoder: MLP
    output: Emission
    num_latents: int = eqx.field(static=True)

    def __init__(self, emission: Emission, num_latents: int, hidden: int, *, key: Key[Array, ""]) -> None:
        for name, value in (("num_latents", num_latents), ("hidden", hidden)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a positive integer, got {value!r}.")
        encoder_key, decoder_key = jax.random.split(key)
        self.encoder = MLP((emission.num_features,), hidden, 2 * num_latents, key=encoder_key)
        self.decoder = MLP((num_latents,), hidden, emission.num_outputs, key=decoder_key)
        self.output = emission
        self.num_latents = num_latents

    def encode(self, sequence):
        return None, self.encoder(self.output.features(sequence.observations, sequence.mask)), None

    def encode_next(self, memory, x, mask, inputs):
        return self.encoder(self.output.features(x, mask)), None, memory

    def prior(self, state, context):
        zeros = jnp.zeros(self.num_latents, self.decoder.output.bias.dtype)
        return dist.Normal(zeros, jnp.ones_like(zeros))

    def proposal(self, state, evidence, prior):
        return diagonal_normal(evidence, LATENT_SHIFT)

    def emission(self, state, latent, context):
        return self.output(self.decoder(latent))
