"""Discrete and continuous latents together: scores of the ones, paths of the others, against quadrature (N = T = 2).

Noise is integrated by quadrature; regimes and ancestors are enumerated. For any nodes the derivative of the quadrature
of E[log p̂] is the quadrature of an unbiased estimator, to rounding.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo as package
from fivo.bounds import FIVO, IWAE
from fivo.gradients import Mixed, MixedScore, MovingAverage, OtherParticles, StopGradientResampling
from fivo.resampling import Schedule
from tests.covering import covering
from tests.fast import fast_jit
from tests.gradients.chain import chain, symbols
from tests.gradients.regimes import Regimes, quadrature, regimes, replay
from tests.gradients.switching import Switching
from tests.gradients.walk import GIVEN, walk
from tests.gradients.walk import quadrature as walk_quadrature
from tests.helpers import repeated
from tests.sentences import assert_one_sentence

pytestmark = pytest.mark.usefixtures("x64")

NODES = 3
BASELINES = {"no baseline": (), "particles": (OtherParticles(),), "moving average": (MovingAverage(slope=-0.7),)}
ORDERS = [False, True]
orders = pytest.mark.parametrize("level_first", ORDERS, ids=["regime first", "level first"])


def fivo(gradient) -> FIVO:
    return FIVO(2, resampling=GIVEN, criterion=Schedule((0,)), gradient=gradient)


@cache
def exact(level_first: bool, resampling: bool) -> Regimes:
    """∇ Σ mass P(regimes, ancestors) log p̂ over all outcomes."""
    batch, _, mass = quadrature(NODES)

    def bound(model):
        log_evidence, log_probability = replay(model, batch.observations, resampling)
        return jnp.sum(mass * jnp.exp(log_probability) * log_evidence)

    return fast_jit(jax.grad(bound))(regimes(level_first))


@cache
def masses(level_first: bool, resampling: bool) -> np.ndarray:
    """The probability of every outcome."""
    batch, _, mass = quadrature(NODES)
    log_probability = fast_jit(lambda m, x: replay(m, x, resampling)[1])(regimes(level_first), batch.observations)
    whole = mass * np.exp(np.asarray(log_probability))
    np.testing.assert_allclose(whole.sum(), 1, rtol=1e-12)
    return whole


def expectation(bound, level_first: bool, resampling: bool) -> Regimes:
    """The average gradient, the masses not differentiated."""
    batch, keys, _ = quadrature(NODES)
    return gradient_of(bound, regimes(level_first), batch, keys, jnp.asarray(masses(level_first, resampling)))


def differences(got: Regimes, expected: Regimes) -> np.ndarray:
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    return np.array([np.abs(a - b).max() for a, b in pairs])


@orders
def test_the_replay_is_the_filter(level_first):
    """The values first: what is differentiated below is log p̂ of the filter itself."""
    batch, keys, _ = quadrature(2)
    for bound, resampling in ((fivo("mixed-score"), True), (IWAE(2, gradient="mixed"), False)):
        drawn = fast_jit(lambda m, b=bound: b(m, batch, key=keys).log_evidence)(regimes(level_first))
        written = replay(regimes(level_first), batch.observations, resampling)[0]
        np.testing.assert_allclose(drawn, written, rtol=1e-12)


@covering("level_first, baseline", ORDERS, BASELINES, strength=1)
def test_mixed_scores_are_the_gradient_of_fivo(level_first, baseline):
    got = expectation(fivo(MixedScore(*BASELINES[baseline])), level_first, resampling=True)
    assert differences(got, exact(level_first, resampling=True)).max() < 1e-12


@covering("level_first, baseline", ORDERS, ["no baseline", "particles"], strength=1)
def test_without_resampling_scores_of_the_discrete_latents_suffice(level_first, baseline):
    got = expectation(IWAE(2, gradient=Mixed(*BASELINES[baseline])), level_first, resampling=False)
    assert differences(got, exact(level_first, resampling=False)).max() < 1e-12


def test_every_term_is_needed():
    """Without the ancestors' scores the gradient is biased, and without those of the regimes it is too."""
    level_first = False
    truth = exact(level_first, resampling=True)
    assert differences(expectation(fivo(Mixed()), level_first, resampling=True), truth).max() > 1e-3

    def paths_alone(model, batch, *, key):
        pf = package.ParticleFilter(2, GIVEN, Schedule((0,)))
        return pf(model, batch, key=key)

    assert differences(expectation(paths_alone, level_first, resampling=True), truth).max() > 1e-2


@orders
def test_stop_gradient_resampling_estimates_the_score_of_the_likelihood(level_first):
    """E[p̂ ∇ log p̂] = ∇p(x) for both kinds. With noise this wide the quadrature converges fast, and to the truth."""
    wide = jnp.asarray(1.2), jnp.asarray(0.1)
    model = eqx.tree_at(lambda m: (m.log_noise, m.log_scale), regimes(level_first), wide)
    truth = jax.grad(likelihood)(model)
    bound, off = fivo(StopGradientResampling()), []
    for num_nodes in (5, 7):
        batch, keys, mass = quadrature(num_nodes)
        log_evidence, log_probability = fast_jit(lambda m, x: replay(m, x, True))(model, batch.observations)
        weights = jnp.asarray(mass) * jnp.exp(log_probability + log_evidence)
        np.testing.assert_allclose(jnp.sum(weights), likelihood(model), rtol=1e-3)
        got = gradient_of(bound, model, batch, keys, weights)
        off.append(differences(got, truth).max() / likelihood(model))
    assert off[1] < 0.1 * off[0] < 1e-3
    assert not np.any(truth.guide)


def likelihood(model: Regimes) -> jax.Array:
    """p(x): a sum over the regimes of Gaussian integrals over the levels."""
    total = jnp.zeros(())
    noise = jnp.exp(2 * model.log_noise)
    log_chain = jax.nn.log_softmax(model.chain, axis=1)
    for first in (0, 1):
        for second in (0, 1):
            gains = jnp.array([1 + 0.5 * first, 1 + 0.5 * second])
            start = model.centres[first] + model.drift * 0.3
            mean = jnp.stack([start, model.centres[second] + model.drift * start])
            covariance = jnp.array([[1.0, 0.0], [0.0, 1.0]])
            covariance = covariance.at[0, 1].set(model.drift).at[1, 0].set(model.drift)
            covariance = covariance.at[1, 1].set(1 + model.drift**2)
            observed = gains[:, None] * covariance * gains[None, :] + noise * jnp.eye(2)
            log_joint = log_chain[0, first] + log_chain[first, second]
            density = jax.scipy.stats.multivariate_normal.pdf(jnp.asarray((0.7, -0.4)), gains * mean, observed)
            total += jnp.exp(log_joint) * density
    return total


def gradient_of(bound, model, batch, keys, weights=1.0):
    return fast_jit(jax.grad(lambda m: jnp.sum(weights * bound(m, batch, key=keys).log_evidence)))(model)


@pytest.mark.parametrize(("mixed", "plain"), [("mixed", "latent-score"), ("mixed-score", "score")])
def test_for_discrete_latents_alone_they_are_scores(mixed, plain):
    batch, keys = repeated(symbols(3), 20), jax.random.split(jax.random.key(0), 20)
    got, expected = (
        gradient_of(FIVO(3, criterion=Schedule((0, 1)), gradient=name), chain(), batch, keys) for name in (mixed, plain)
    )
    assert differences(got, expected).max() < 1e-10


@pytest.mark.parametrize(("mixed", "plain"), [("mixed", "pathwise"), ("mixed-score", "resampling-score")])
def test_for_continuous_latents_alone_they_are_paths(mixed, plain):
    batch, keys, _ = walk_quadrature(2)
    got, expected = (gradient_of(fivo(name), walk(), batch, keys) for name in (mixed, plain))
    assert differences(got, expected).max() < 1e-10


@pytest.mark.parametrize("gradient", ["mixed", "mixed-score", "stop-gradient"])
def test_kinds_that_cannot_be_told_apart_are_refused(gradient):
    model = Switching(jnp.zeros(2), jnp.array([0.5, 2.0]))
    batch = package.Batch.from_sequences([np.ones((3, 1))])
    bound = FIVO(2, gradient=gradient)
    with pytest.raises(package.InputError) as caught:
        jax.eval_shape(jax.grad(lambda m: jnp.sum(bound(m, batch, key=jax.random.key(0)).log_evidence)), model)
    assert_one_sentence(caught.value, "fivo.distributions.Joint", "got Regime")
