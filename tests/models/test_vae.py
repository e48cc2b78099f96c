"""The plain latent variable model: a VAE on generated images, with the truth's own likelihood as the limit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fivo
from fivo.bounds import IWAE
from fivo.data import bars, bars_log_likelihood
from fivo.models import VAE, BernoulliEmission
from tests.fast import fast_jit
from tests.sentences import assert_one_sentence


def test_the_likelihood_of_bars_is_a_distribution():
    """Of all 2 x 2 images it adds up to one, and images drawn have the frequencies that it says."""
    every = np.array([[(i >> bit) & 1 for bit in range(4)] for i in range(16)], np.float32)
    probabilities = np.exp(bars_log_likelihood(every))
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-9)
    drawn = bars(20_000, size=2) @ (1 << np.arange(4))
    shares = np.bincount(drawn.astype(int), minlength=16) / len(drawn)
    errors = np.sqrt(probabilities * (1 - probabilities) / len(drawn))
    assert (np.abs(shares - probabilities) < 4.5 * errors).all()


def test_a_vae_learns_bars():
    """From independent pixels most of the way to the true likelihood, which no model beats on average."""
    images = bars(1_000, size=3)
    batch = fivo.Batch.from_sequences(images[:, None])
    model = VAE(BernoulliEmission(images.mean(axis=0)), 4, 32, key=jax.random.key(0))
    bound, optimiser = IWAE(5), optax.adam(5e-3)
    parameters, fixed = eqx.partition(model, eqx.is_inexact_array)

    def loss(parameters, key):
        return -jnp.mean(bound(eqx.combine(parameters, fixed), batch, key=key).log_evidence)

    def step(carry, key):
        parameters, state = carry
        value, gradient = jax.value_and_grad(loss)(parameters, key)
        updates, state = optimiser.update(gradient, state)
        return (eqx.apply_updates(parameters, updates), state), -value

    @fast_jit
    def train(parameters):
        keys = jax.random.split(jax.random.key(1), 400)
        return jax.lax.scan(step, (parameters, optimiser.init(parameters)), keys)[1]

    bounds = np.asarray(train(parameters))
    truth = bars_log_likelihood(images)
    rates = images.mean(axis=0)
    independent = (images * np.log(rates) + (1 - images) * np.log1p(-rates)).sum(axis=1).mean()
    assert bounds[0] < independent + 0.1
    assert bounds[-20:].mean() > independent + 0.6 * (truth.mean() - independent)
    assert bounds[-20:].mean() < truth.mean() + 4 * truth.std() / np.sqrt(len(images))


def test_sizes_are_whole_numbers():
    with pytest.raises(fivo.InputError) as refusal:
        VAE(BernoulliEmission(np.array([0.5])), 0, 8, key=jax.random.key(0))
    assert_one_sentence(refusal.value, "num_latents", "got 0")
