"""Stochastic volatility has no closed form; with one series a fine grid over the latent does as well."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import fivo
from fivo.bounds import FIVO
from fivo.models import ProductProposal, Proposed, StochasticVolatility
from tests.fast import fast_jit
from tests.helpers import mean_within, repeated

pytestmark = pytest.mark.usefixtures("x64")

MEAN, PERSISTENCE, SCALE = -0.5, 0.9, 0.5


def grid_evidence(x, mask, beta=1.0, start=None):
    """The forward algorithm on a grid: the trapezoidal rule is exact to rounding for functions this smooth."""
    stationary = SCALE / np.sqrt(1 - PERSISTENCE**2)
    start = stationary if start is None else start
    grid, spacing = np.linspace(MEAN - 10 * stationary, MEAN + 10 * stationary, 2001, retstep=True)
    transition = norm.pdf(grid[None, :], MEAN + PERSISTENCE * (grid[:, None] - MEAN), SCALE) * spacing
    density = norm.pdf(grid, MEAN, start) * spacing
    for value, seen in zip(x, mask, strict=True):
        density = density * (norm.pdf(value, 0, beta * np.exp(grid / 2)) if seen else 1)
        last, density = density, density @ transition
    return np.log(last.sum())


@pytest.mark.parametrize("proposal", ["prior", "learned"])
def test_the_filter_has_the_evidence_of_the_grid_on_average(proposal):
    model = StochasticVolatility(
        mean=np.array([MEAN]), persistence=np.array([PERSISTENCE]), scale=np.array([SCALE]), proposal=proposal
    )
    if proposal == "learned":
        model = eqx.tree_at(lambda m: m.learned, model, jnp.asarray([[0.2], [0.05], [0.1]]))
    x = np.array([0.3, -1.5, 0.1, 2.0, -0.2, 0.05, 0.9, -0.6])
    mask = np.arange(8) != 4
    batch = fivo.Batch.from_sequences([x[:, None]], mask=[mask[:, None]])
    run = fast_jit(lambda batch: FIVO(16, "systematic")(model, batch, key=jax.random.key(0)).log_evidence)
    drawn = run(repeated(batch, 4000))
    ratios = np.exp(np.asarray(drawn) - grid_evidence(x, mask))
    assert ratios.var() < 1
    assert mean_within(ratios, 1)


def test_independent_series_with_a_scale_have_the_evidence_of_their_grids():
    """The model of Lawson et al.: β is learned too, z_1 ~ N(μ, σ²), and the proposal has a factor for every step."""
    betas, x = np.array([0.3, 2.0]), np.array([[0.1, -0.3, 0.03, 0.4], [-1.2, 1.6, 0.7, -2.0]]).T
    both = {"mean": MEAN, "persistence": PERSISTENCE, "scale": SCALE}
    model = StochasticVolatility(
        **{name: np.full(2, value) for name, value in both.items()}, emission_scale=betas, stationary=False
    )
    np.testing.assert_allclose(model.emission_scale, betas)
    model = Proposed(model, ProductProposal(4, 2, mean=np.full((4, 2), 0.2), scale=np.full(2, 2.0)))
    batch = repeated(fivo.Batch.from_sequences([x]), 4000)
    drawn = fast_jit(lambda b: FIVO(16, "systematic")(model, b, key=jax.random.key(0)).log_evidence)(batch)
    seen = np.ones(4, bool)
    exact = sum(grid_evidence(x[:, i], seen, betas[i], start=SCALE) for i in range(2))
    ratios = np.exp(np.asarray(drawn) - exact)
    assert ratios.var() < 1
    assert mean_within(ratios, 1)


def test_parameters_come_back_as_given():
    model = StochasticVolatility(mean=(0.1, 0.2), persistence=(0.95, -0.5), scale=(0.3, 1.5))
    np.testing.assert_allclose(model.mean, [0.1, 0.2])
    np.testing.assert_allclose(model.persistence, [0.95, -0.5])
    np.testing.assert_allclose(model.scale, [0.3, 1.5])
