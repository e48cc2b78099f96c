"""The variational auto-encoder (Kingma and Welling 2014; Rezende, Mohamed and Wierstra 2014)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Key

from fivo.errors import InputError
from fivo.models.emissions import LATENT_SHIFT, Emission, diagonal_normal
from fivo.models.latent_variable import LatentVariableModel
from fivo.models.layers import MLP


class VAE(LatentVariableModel):
    """z ~ N(0, I), x ~ emission(MLP(z)) and q(z | x) = N from MLP(x)."""

    encoder: MLP
    decoder: MLP
    observed: Emission
    num_latents: int = eqx.field(static=True)

    def __init__(self, emission: Emission, num_latents: int, hidden: int, *, key: Key[Array, ""]) -> None:
        for name, value in (("num_latents", num_latents), ("hidden", hidden)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"got {name}={value!r} where a whole number of at least 1 was expected.")
        encoder_key, decoder_key = jax.random.split(key)
        self.encoder = MLP((emission.num_features,), hidden, 2 * num_latents, key=encoder_key)
        self.decoder = MLP((num_latents,), hidden, emission.num_outputs, key=decoder_key)
        self.observed = emission
        self.num_latents = num_latents

    def encode(self, observations, mask, length):
        return (), self.encoder(self.observed.features(observations, mask))

    def encode_next(self, memory, x, mask):
        return self.encoder(self.observed.features(x, mask)), (), memory

    def prior(self, state, past):
        zeros = jnp.zeros(self.num_latents, self.decoder.output.bias.dtype)
        return dist.Normal(zeros, jnp.ones_like(zeros))

    def proposal(self, state, full, prior):
        return diagonal_normal(full, LATENT_SHIFT)

    def emission(self, state, latent, past):
        return self.observed(self.decoder(latent))
