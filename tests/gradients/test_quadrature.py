"""Reparameterized estimators by quadrature over Gaussian latents, with ancestors enumerated (N = T = 2)."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo.bounds import ELBO, FIVO, IWAE
from fivo.gradients import DoublyReparameterized, Pathwise, ResamplingScore, Score, StickingTheLanding
from fivo.resampling import Schedule
from tests.fast import fast_jit
from tests.gradients.walk import ANCESTRIES, GIVEN, ORDERS, Walk, log_evidence, quadrature, walk

pytestmark = pytest.mark.usefixtures("x64")

OF_THE_PROPOSAL = ("pull", "log_scale")
NODES = 12


def fivo(gradient) -> FIVO:
    return FIVO(2, resampling=GIVEN, criterion=Schedule((0,)), gradient=gradient)


@cache
def masses(num_nodes: int) -> np.ndarray:
    """The probability of every node and ancestry."""
    batch, _, mass = quadrature(num_nodes)
    noise = batch.observations[:: len(ANCESTRIES), :, 1:]
    laws = [fast_jit(jax.vmap(lambda e, a=a: log_evidence(walk(), e, a)[1]))(noise) for a in ANCESTRIES]
    return mass * (ORDERS * np.exp(np.stack(laws, axis=1))).reshape(-1)


@cache
def expectation(bound, num_nodes: int) -> Walk:
    """The average gradient, the masses not differentiated."""
    batch, keys, _ = quadrature(num_nodes)
    mass = jnp.asarray(masses(num_nodes))
    return fast_jit(jax.grad(lambda model: jnp.sum(mass * bound(model, batch, key=keys).log_evidence)))(walk())


def average(bound, num_nodes: int, num_particles: int) -> Walk:
    """The same without resampling, where the ancestries make no difference."""
    batch, keys, mass = quadrature(num_nodes, num_particles)
    one = slice(None, None, len(ANCESTRIES))
    batch, keys, mass = jax.tree.map(lambda leaf: leaf[one], (batch, keys, jnp.asarray(mass)))
    return fast_jit(jax.grad(lambda model: jnp.sum(mass * bound(model, batch, key=keys).log_evidence)))(walk())


def differences(got: Walk, expected: Walk, names=tuple(Walk.__dataclass_fields__)) -> np.ndarray:
    return np.array([abs(getattr(got, name) - getattr(expected, name)) for name in names])


def test_pathwise_plus_score_is_the_gradient_of_fivo():
    """For any nodes: the derivative of the quadrature of E[log p̂] is the quadrature of the estimator."""
    batch, _, mass = quadrature(3)
    noise = batch.observations[:: len(ANCESTRIES), :, 1:]
    mass = mass[:: len(ANCESTRIES)]

    def bound(model):
        total = 0.0
        for ancestors, orders in zip(ANCESTRIES, ORDERS, strict=True):
            value, log_law = jax.vmap(lambda e, a=ancestors: log_evidence(model, e, a))(noise)
            total += jnp.sum(mass * orders * jnp.exp(log_law) * value)
        return total

    exact = fast_jit(jax.grad(bound))(walk())
    assert differences(expectation(fivo(ResamplingScore()), 3), exact).max() < 1e-12
    assert differences(expectation(fivo(ResamplingScore("particles")), 3), exact).max() < 1e-12
    bias = differences(expectation(fivo(Pathwise()), 3), exact)
    assert bias.max() > 1e-2, "without the resampling term the gradient is biased"


def test_scores_of_gaussian_latents_agree_with_their_paths():
    got, expected = expectation(fivo(Score()), NODES), expectation(fivo(ResamplingScore()), NODES)
    assert differences(got, expected).max() < 1e-6


def test_doubly_reparameterized_is_pathwise_on_average():
    """With resampling between the steps and without."""
    expected = expectation(fivo(Pathwise()), NODES)
    assert differences(expectation(fivo(DoublyReparameterized()), NODES), expected).max() < 1e-6
    expected = average(IWAE(2), NODES, 2)
    assert differences(average(IWAE(2, gradient=DoublyReparameterized()), NODES, 2), expected).max() < 1e-6


def test_sticking_the_landing_is_biased_for_more_than_one_particle():
    pathwise, landing = expectation(fivo(Pathwise()), NODES), expectation(fivo(StickingTheLanding()), NODES)
    assert (differences(landing, pathwise, OF_THE_PROPOSAL) > 1e-2).all()
    pathwise = average(ELBO(), NODES, 1)
    assert differences(average(ELBO(gradient=StickingTheLanding()), NODES, 1), pathwise).max() < 1e-6
