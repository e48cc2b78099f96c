"""How frames enter the networks and what their outputs stand for."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fivo.errors import InputError
from fivo.models import BernoulliEmission, CategoricalEmission, NormalEmission
from tests.sentences import assert_one_sentence

MEAN = np.array([0.25, 0.5, 0.125], np.float32)
RATES = np.array([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]], np.float32)


@pytest.mark.parametrize("emission", [BernoulliEmission(MEAN), NormalEmission(MEAN)])
def test_inputs_are_centred_and_missing_entries_are_zero(emission):
    x = np.array([[1.0, 0.0, 1.0], [0.25, 0.5, 0.125]], np.float32)
    mask = np.array([[True, True, False], [True, False, True]])
    np.testing.assert_array_equal(emission.features(jnp.asarray(x), None), x - MEAN)
    np.testing.assert_array_equal(emission.features(jnp.asarray(x), jnp.asarray(mask)), np.where(mask, x - MEAN, 0))
    assert emission.num_features == 3


def test_bernoulli_scores_raw_frames_with_the_training_mean_as_offset():
    emission = BernoulliEmission(MEAN)
    x, outputs = np.array([1.0, 0.0, 0.0]), np.array([0.3, -0.2, 0.0])
    p = 1 / (1 + np.exp(-(outputs + np.log(MEAN / (1 - MEAN)))))
    expected = stats.bernoulli(p).logpmf(x)
    np.testing.assert_allclose(emission(jnp.asarray(outputs, jnp.float32)).log_prob(x), expected, rtol=1e-5)


def test_a_note_that_training_never_or_always_plays_keeps_some_probability():
    scores = BernoulliEmission(np.array([0.0, 1.0], np.float32))(jnp.zeros(2)).log_prob(jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(scores, np.log([1e-4, 1e-4]), rtol=1e-3)


def test_normal_has_a_scale_of_its_own_and_a_floor():
    emission = NormalEmission(MEAN)
    assert emission.num_outputs == 6
    outputs = np.array([1.0, 0.0, -1.0, 0.5, 0.0, -200.0])
    scale = np.log1p(np.exp(outputs[3:] + 0.25)) + 1e-4
    x = np.array([0.5, 0.5, -1.0])
    got = emission(jnp.asarray(outputs, jnp.float32)).log_prob(x)
    np.testing.assert_allclose(got, stats.norm(outputs[:3], scale).logpdf(x), rtol=1e-4)


def test_categorical_reads_symbols_as_one_hot_vectors():
    emission = CategoricalEmission(RATES)
    assert emission.num_features == emission.num_outputs == 6
    features = emission.features(jnp.array([[2, 1]]), jnp.array([[True, False]]))
    np.testing.assert_allclose(features, [[-0.5, -0.25, 0.75, 0, 0, 0]])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_categorical_scores_symbols_of_any_number_type(dtype):
    emission = CategoricalEmission(RATES)
    outputs = np.array([0.1, 0.2, 0.3, -0.1, 0.0, 0.4])
    logits = outputs.reshape(2, 3) + np.log(np.clip(RATES, 1e-4, 1))
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    got = emission(jnp.asarray(outputs, jnp.float32)).log_prob(jnp.asarray([2, 0], dtype))
    np.testing.assert_allclose(got, expected[[0, 1], [2, 0]], rtol=1e-5)


def test_what_is_no_symbol_is_impossible():
    emission = CategoricalEmission(RATES)
    assert np.isneginf(emission(jnp.zeros(6)).log_prob(jnp.array([0.5, 3.0]))).all()


BAD = {
    "means above one": (lambda: BernoulliEmission(np.array([0.5, 1.5], np.float32)), "[0, 1]"),
    "a matrix of means": (lambda: BernoulliEmission(RATES), "(2, 3)"),
    "a NaN": (lambda: NormalEmission(np.array([0.5, np.nan], np.float32)), "finite"),
    "a vector of rates": (lambda: CategoricalEmission(MEAN), "(3,)"),
    "negative rates": (lambda: CategoricalEmission(-RATES), "negative"),
    "wide frames": (
        lambda: CategoricalEmission(RATES).features(jnp.zeros((4, 3)), None),
        "2 entries per frame, as the model has, got 3",
    ),
}


@pytest.mark.parametrize(("build", "part"), BAD.values(), ids=BAD)
def test_bad_input(build, part):
    with pytest.raises(InputError) as refusal:
        build()
    assert_one_sentence(refusal.value, part)
