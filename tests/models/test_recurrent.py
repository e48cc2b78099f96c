"""VRNN and SRNN are the paper's networks: sizes, starting values, and two steps against plain numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.models import SRNN, VRNN, BernoulliEmission
from tests.fast import fast_jit
from tests.models.plain_networks import backward_run, logit, lstm, mlp, normal
from tests.sentences import assert_one_sentence

H, D = 3, 5
MEAN = np.array([0.1, 0.2, 0.0, 0.6, 1.0], np.float32)
X = np.array([[0, 1, 0, 1, 1], [1, 0, 0, 0, 1], [0, 0, 0, 1, 1]], np.float32)


def build(kind, smoothing=False):
    """Biases start at zero, which would hide mistakes with them: here they do not."""
    model = kind(BernoulliEmission(MEAN), H, smoothing=smoothing, key=jax.random.key(0))
    rng = np.random.default_rng(1)

    def moved(path, leaf):
        is_bias = jax.tree_util.keystr(path).endswith(".bias")
        return jnp.asarray(leaf + 0.3 * rng.standard_normal(leaf.shape), leaf.dtype) if is_bias else leaf

    return jax.tree_util.tree_map_with_path(moved, model)


def mlp_size(inputs, hidden, outputs):
    return inputs * hidden + hidden + hidden * outputs + outputs


def lstm_size(inputs, hidden):
    return (inputs + hidden) * 4 * hidden + 4 * hidden


def trained_size(model):
    """Statistics of the data are constants, not arrays among the leaves."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))


@pytest.mark.parametrize("hidden", [4, 32])
@pytest.mark.parametrize("smoothing", [False, True])
@pytest.mark.parametrize("kind", [VRNN, SRNN])
def test_number_of_parameters(kind, smoothing, hidden):
    h, dim = hidden, 88
    model = kind(BernoulliEmission(np.full(dim, 0.1, np.float32)), h, smoothing=smoothing, key=jax.random.key(0))
    encoders = mlp_size(dim, h, h) + mlp_size(h, h, h)
    emission = mlp_size(2 * h, h, dim)
    if kind is VRNN:
        expected = encoders + emission + lstm_size(2 * h, h) + mlp_size(h, h, 2 * h)
        expected += mlp_size((3 if smoothing else 2) * h, h, 2 * h) + smoothing * lstm_size(h, h)
    else:
        expected = encoders + emission + lstm_size(h, h) + mlp_size(2 * h, h, 2 * h)
        expected += mlp_size((4 if smoothing else 3) * h, h, 2 * h) + smoothing * lstm_size(2 * h, h)
    assert trained_size(model) == expected


@pytest.mark.parametrize("kind", [VRNN, SRNN])
def test_starting_values(kind):
    """Xavier-uniform weights with the fan-in of all inputs together, zero biases."""
    model = kind(BernoulliEmission(np.full(88, 0.1, np.float32)), 32, smoothing=True, key=jax.random.key(0))
    layers = [
        layer for layer in jax.tree.leaves(model, is_leaf=lambda x: hasattr(x, "weights")) if hasattr(layer, "weights")
    ]
    assert len(layers) == 12  # five networks of two layers, two LSTMs
    for layer in layers:
        assert not jnp.any(layer.bias)
        fan_in, fan_out = sum(w.shape[0] for w in layer.weights), layer.bias.shape[0]
        limit = np.sqrt(6 / (fan_in + fan_out))
        weights = np.concatenate([np.asarray(w).ravel() for w in layer.weights])
        assert np.abs(weights).max() <= limit
        # A uniform on [-l, l] has the standard deviation l / √3, estimated to a relative 0.45 / √n.
        assert weights.std() == pytest.approx(limit / np.sqrt(3), rel=4 * 0.45 / np.sqrt(weights.size))


@pytest.mark.parametrize("smoothing", [False, True])
def test_two_steps_of_the_vrnn(smoothing):
    model = build(VRNN, smoothing)
    context, evidence, history = model.encode(fivo.Sequence(jnp.asarray(X), jnp.asarray(3)))
    assert context is None, "without inputs nothing but the state is known before x_t"
    features = [mlp(model.data_encoder.network, x - MEAN) for x in X]
    future = backward_run(model.backward, [[phi] for phi in features]) if smoothing else None
    # The frame before the first is zero after centring, and φ_z is zero.
    silence = mlp(model.data_encoder.network, np.zeros(D))
    hidden, cell = lstm(model.recurrence, np.zeros(H), np.zeros(H), silence, np.zeros(H))
    state = model.initial_state(None)
    rng = np.random.default_rng(2)
    for t in range(2):
        latent = rng.standard_normal(H)
        mean, scale = normal(mlp(model.prior_network, hidden))
        prior = model.prior(state, None)
        assert_normal(prior, mean, scale)
        inputs = [hidden, features[t]] + ([future[t]] if smoothing else [])
        residual, scale = normal(mlp(model.proposal_network, *inputs))
        assert_normal(model.proposal(state, evidence[t], prior), mean + residual, scale)
        logits = mlp(model.emission_network, mlp(model.latent_encoder, latent), hidden)
        assert_bernoulli(model.emission(state, jnp.asarray(latent, jnp.float32), None), logits)
        hidden, cell = lstm(model.recurrence, hidden, cell, features[t], mlp(model.latent_encoder, latent))
        state = model.advance(state, jnp.asarray(latent, jnp.float32), history[t])


@pytest.mark.parametrize("smoothing", [False, True])
def test_two_steps_of_the_srnn(smoothing):
    model = build(SRNN, smoothing)
    context, evidence, history = model.encode(fivo.Sequence(jnp.asarray(X), jnp.asarray(3)))
    assert history is None, "the state has no part of x"
    features = [mlp(model.data_encoder.network, x - MEAN) for x in X]
    hidden, cell = lstm(model.recurrence, np.zeros(H), np.zeros(H), mlp(model.data_encoder.network, np.zeros(D)))
    hiddens = [hidden]
    for phi in features[:-1]:
        hidden, cell = lstm(model.recurrence, hidden, cell, phi)
        hiddens.append(hidden)
    future = backward_run(model.backward, list(zip(hiddens, features, strict=True))) if smoothing else None
    state, code = model.initial_state(jax.tree.map(lambda leaf: leaf[0], context)), np.zeros(H)
    rng = np.random.default_rng(2)
    for t in range(2):
        latent = rng.standard_normal(H)
        context_t = jax.tree.map(lambda leaf, t=t: leaf[t], context)
        mean, scale = normal(mlp(model.prior_network, hiddens[t], code))
        prior = model.prior(state, context_t)
        assert_normal(prior, mean, scale)
        inputs = [hiddens[t], code, features[t]] + ([future[t]] if smoothing else [])
        residual, scale = normal(mlp(model.proposal_network, *inputs))
        assert_normal(model.proposal(state, evidence[t], prior), mean + residual, scale)
        code = mlp(model.latent_encoder, latent)
        logits = mlp(model.emission_network, code, hiddens[t])
        assert_bernoulli(model.emission(state, jnp.asarray(latent, jnp.float32), context_t), logits)
        state = model.advance(state, jnp.asarray(latent, jnp.float32), None)


def test_a_network_that_says_nothing_leaves_the_training_mean():
    """Without emission network and with q = p, every particle scores the train-mean Bernoulli."""
    model = build(VRNN)
    silent = eqx.tree_at(
        lambda m: [getattr(m, name).output for name in ("emission_network", "prior_network", "proposal_network")],
        model,
        replace_fn=lambda layer: jax.tree.map(jnp.zeros_like, layer),
    )
    batch = fivo.Batch.from_sequences([X, X[:2]])
    bound = FIVO(2)
    got = fast_jit(lambda model, batch, key: bound(model, batch, key=key).log_evidence)(
        silent, batch, jax.random.key(0)
    )
    rate = np.clip(MEAN, 1e-4, 1 - 1e-4)
    scores = (X * np.log(rate) + (1 - X) * np.log1p(-rate)).sum(axis=1)
    np.testing.assert_allclose(got, [scores.sum(), scores[:2].sum()], rtol=1e-5)


def test_hidden_is_at_least_one():
    for kind in (VRNN, SRNN):
        with pytest.raises(fivo.InputError) as refusal:
            kind(BernoulliEmission(MEAN), 0, key=jax.random.key(0))
        assert_one_sentence(refusal.value, "hidden", "got 0")


def assert_normal(distribution, mean, scale):
    np.testing.assert_allclose(distribution.loc, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(distribution.scale, scale, rtol=1e-4, atol=1e-5)


def assert_bernoulli(distribution, logits):
    np.testing.assert_allclose(distribution.logits, logits + logit(np.clip(MEAN, 1e-4, 1 - 1e-4)), rtol=1e-4, atol=1e-5)
