"""Arithmetic of log-weights against NumPy in double precision, with -inf and gradients defined."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.weights import effective_sample_size, log_mean_exp, log_sum_exp, normalize

DEAD = jnp.full((3,), -jnp.inf)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(-1e4, 1e4, width=32), st.just(-np.inf)), min_size=4, max_size=4))
def test_agreement_with_logaddexp(values):
    log_weights = jnp.asarray(values, jnp.float32)
    total = np.logaddexp.reduce(np.asarray(values, np.float64))
    assert np.isclose(log_sum_exp(log_weights), total, rtol=1e-6, atol=1e-6)
    assert np.isclose(log_mean_exp(log_weights), total - np.log(4), rtol=1e-6, atol=1e-6)
    normalised, log_total = normalize(log_weights)
    assert np.isclose(log_total, total, rtol=1e-6, atol=1e-6)
    assert np.isclose(np.exp(np.asarray(normalised, np.float64)).sum(), 1, rtol=4e-3)
    assert 0.99 < float(effective_sample_size(normalised)) < 4.01


def test_effective_sample_size():
    normalised, _ = normalize(jnp.log(jnp.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])))
    np.testing.assert_allclose(effective_sample_size(normalised), [2, 1, 4], rtol=1e-6)


def test_dead_weights_have_a_defined_answer():
    assert log_sum_exp(DEAD) == -jnp.inf
    normalised, log_total = normalize(DEAD)
    np.testing.assert_allclose(np.exp(normalised), np.full(3, 1 / 3), rtol=1e-6)
    assert log_total == -jnp.inf


@pytest.mark.parametrize("function", [log_sum_exp, log_mean_exp, lambda w: normalize(w)[1]])
def test_gradients_are_the_weights_and_never_nan(function):
    np.testing.assert_allclose(jax.grad(function)(jnp.array([0.0, -jnp.inf, 0.0])), [0.5, 0, 0.5], rtol=1e-6)
    np.testing.assert_array_equal(jax.grad(function)(DEAD), np.zeros(3))


def test_nan_stays_visible():
    assert jnp.isnan(log_sum_exp(jnp.array([0.0, jnp.nan])))
    assert jnp.isnan(normalize(jnp.array([0.0, jnp.nan]))[1])
