"""benchmarks/forex_exact.py: the evidence of one series on a grid, and its maximum."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import forex_exact
from tests.models.test_stochastic_volatility import MEAN, PERSISTENCE, SCALE, grid_evidence

X = np.array([0.1, -0.3, 0.03, 0.4, -0.2])
LEVEL = MEAN / 2 + np.log(0.3)


def test_the_evidence_is_that_of_a_fine_grid():
    expected = grid_evidence(X, np.ones(len(X), bool), beta=0.3, start=SCALE)
    found = forex_exact.log_evidence(np.array([LEVEL, np.arctanh(PERSISTENCE), np.log(SCALE)]), X)
    assert found == pytest.approx(expected, abs=1e-6)
    still = forex_exact.log_evidence(np.array([LEVEL, 0.1, -9.0]), X)
    assert still == pytest.approx(norm.logpdf(X, 0, np.exp(LEVEL)).sum(), abs=1e-3)


def test_nothing_nearby_is_likelier_than_the_best():
    best = forex_exact.best(X)
    highest = forex_exact.log_evidence(best, X)
    for move in 0.3 * np.eye(3):
        for sign in (-1, 1):
            assert forex_exact.log_evidence(best + sign * move, X) < highest + 1e-3
