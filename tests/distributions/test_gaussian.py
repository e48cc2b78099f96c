"""The multivariate normal against SciPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fivo.distributions import Gaussian
from tests.helpers import mean_within

pytestmark = pytest.mark.usefixtures("x64")

LOC = np.array([0.5, -1.0, 2.0])
SCALE = np.array([[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 0.6]])
COVARIANCE = SCALE @ SCALE.T
X = np.array([0.1, -0.4, 1.3])


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, 1, -1)])
def test_log_prob(signs):
    """The signs of the factor's columns change nothing."""
    gaussian = Gaussian(jnp.asarray(LOC), jnp.asarray(SCALE * np.array(signs)))
    np.testing.assert_allclose(gaussian.log_prob(jnp.asarray(X)), multivariate_normal(LOC, COVARIANCE).logpdf(X))


@pytest.mark.parametrize("seen", list(itertools.product([False, True], repeat=3)))
def test_marginal_log_prob(seen):
    gaussian = Gaussian(jnp.asarray(LOC), jnp.asarray(SCALE))
    seen = np.array(seen)
    exact = 0.0
    if seen.any():
        exact = multivariate_normal(LOC[seen], COVARIANCE[np.ix_(seen, seen)]).logpdf(X[seen])
    got = gaussian.marginal_log_prob(jnp.asarray(np.where(seen, X, np.nan)), jnp.asarray(seen))
    np.testing.assert_allclose(got, exact, atol=1e-12)


def test_draws_have_its_moments():
    draws = np.asarray(Gaussian(jnp.asarray(LOC), jnp.asarray(SCALE)).sample(jax.random.key(0), (20_000,)))
    assert mean_within(draws, LOC)
    centred = draws - LOC
    assert mean_within(centred[:, :, None] * centred[:, None, :], COVARIANCE)
