"""Resampling that derivatives pass through: what it keeps of the weighted particles, what it loses, what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.resampling import DIFFERENTIABLE, Relaxed, Soft, StopGradient, Transport, bound_lost, multinomial
from tests.sentences import assert_one_sentence

LOG_WEIGHTS = jnp.log(jnp.array([0.5, 0.1, 0.15, 0.25]))
STATE = {"a": jnp.array([1.0, -2.0, 0.5, 3.0]), "b": jnp.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [-1.0, 2.0]])}
MEAN = float(jnp.sum(jnp.exp(LOG_WEIGHTS) * STATE["a"]))
NUM_DRAWS = 20_000


def draws(scheme):
    """Σ w a after resampling, for many keys."""

    def one(key):
        moved = scheme.resample(key, LOG_WEIGHTS, STATE)
        return jnp.sum(jnp.exp(moved.log_weights) * moved.state["a"])

    return np.asarray(jax.vmap(one)(jax.random.split(jax.random.key(0), NUM_DRAWS)), np.float64)


@pytest.mark.parametrize("scheme", [Soft(), Soft(0.0), Soft(1.0), StopGradient(multinomial)])
def test_weighted_sums_are_kept_on_average(scheme):
    values = draws(scheme)
    assert abs(values.mean() - MEAN) < 4 * values.std() / np.sqrt(NUM_DRAWS)
    assert bound_lost(scheme) is None


def test_transport_keeps_the_mean_and_gives_equal_weights():
    moved = Transport(entropy=0.3, iterations=200).resample(jax.random.key(0), LOG_WEIGHTS, STATE)
    np.testing.assert_allclose(jnp.exp(moved.log_weights), 0.25, rtol=1e-6)
    np.testing.assert_allclose(moved.state["a"].mean(), MEAN, rtol=1e-4)
    expected = jnp.exp(LOG_WEIGHTS) @ STATE["b"]
    np.testing.assert_allclose(moved.state["b"].mean(axis=0), expected, rtol=1e-4)


def test_transport_becomes_the_identity_for_equal_weights():
    """With little entropy every particle stays where it is."""
    moved = Transport(entropy=0.01).resample(jax.random.key(0), jnp.full(4, -np.log(4.0)), STATE)
    np.testing.assert_allclose(moved.state["a"], STATE["a"], atol=1e-3)


def test_a_cold_relaxed_draw_is_a_draw():
    moved = Relaxed(1e-3).resample(jax.random.key(0), LOG_WEIGHTS, STATE)
    np.testing.assert_allclose(moved.state["a"], STATE["a"][moved.ancestors], atol=1e-3)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_pass_and_stay_finite_when_a_particle_is_dead(name):
    def total(log_weights):
        moved = DIFFERENTIABLE[name].resample(jax.random.key(0), log_weights, STATE)
        return jnp.sum(jnp.exp(moved.log_weights) * moved.state["a"])

    assert np.abs(jax.grad(total)(LOG_WEIGHTS)).max() > 1e-3
    dead = jnp.log(jnp.array([0.6, 0.0, 0.15, 0.25]))
    assert np.isfinite(jax.grad(total)(dead)).all()


@pytest.mark.parametrize("scheme", [Relaxed(), Transport()])
def test_averages_lose_the_bound_and_need_states_that_have_them(scheme):
    assert bound_lost(scheme) is not None
    with pytest.raises(InputError) as caught:
        scheme.resample(jax.random.key(0), LOG_WEIGHTS, jnp.arange(4))
    assert_one_sentence(str(caught.value), "whole numbers")
    with pytest.raises(InputError) as caught:
        scheme.check(2000)
    assert_one_sentence(str(caught.value), "got 2000")


@pytest.mark.parametrize(
    "make", [lambda: Soft(1.5), lambda: Relaxed(0.0), lambda: Transport(0.0), lambda: Transport(1.0, 0)]
)
def test_bad_settings(make):
    with pytest.raises(InputError):
        make()


class Square(SequenceModel):
    """A walk of which the square is seen: two modes, whose average explains nothing."""

    noise: jax.Array

    def initial_state(self, context):
        return jnp.zeros(()), jnp.ones(())

    def prior(self, state, context):
        return dist.Normal(*state)

    def emission(self, state, latent, context):
        return dist.Normal(latent[None] ** 2, self.noise)

    def advance(self, state, latent, history):
        return latent, jnp.full((), 0.1)


def test_soft_resampling_keeps_the_evidence_and_averages_do_not():
    """E[p̂] by many runs, against that of multinomial resampling, which is p(x)."""
    batch = fivo.Batch.from_sequences([np.ones((3, 1), np.float32)] * 10_000)

    def evidence(scheme) -> tuple[float, float]:
        bound = FIVO(3, resampling=scheme, criterion=fivo.resampling.Always())
        draws = np.exp(
            np.asarray(bound(Square(jnp.asarray(0.3)), batch, key=jax.random.key(0)).log_evidence, np.float64)
        )
        return draws.mean(), draws.std() / np.sqrt(len(draws))

    exact, error = evidence("multinomial")
    off = {}
    for scheme in (Soft(0.3), Relaxed(1.0), Transport(entropy=5.0)):
        mean, own_error = evidence(scheme)
        off[type(scheme)] = (mean - exact) / np.hypot(error, own_error)
    assert abs(off[Soft]) < 4
    assert off[Relaxed] < -4
    assert off[Transport] < -4
