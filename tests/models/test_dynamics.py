"""Models from differential equations: beside scipy's solution of the same equations, and what is known of both."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from fivo.bounds import FIVO
from fivo.models import HeldPrior, HodgkinHuxley, Lorenz63, Proposed, SequenceModel, check_model, simulate
from fivo.resampling import Always
from fivo.smc import ParticleFilter
from tests.fast import fast_jit

pytestmark = pytest.mark.usefixtures("x64")

START = np.array([-40.0, 0.4, 0.2, 0.5])
"""v, n, m, h: on the way to a spike."""


@pytest.mark.parametrize("kind", [HodgkinHuxley, Lorenz63])
def test_they_keep_the_contract(kind):
    model = in_double(kind())
    x = fast_jit(lambda key: simulate(model, 5, key=key).observations)(jax.random.key(0))
    assert check_model(model, np.asarray(x)).ok


def in_double(model: SequenceModel) -> Any:
    return jax.tree.map(lambda leaf: leaf.astype(float) if eqx.is_inexact_array(leaf) else leaf, model)


def slopes(z, current):
    """The equations as they are written: gates as probabilities, a removable singularity where nobody comes."""
    v, n, m, h = z
    opening = 0.01 * (v + 55) / (1 - np.exp(-(v + 55) / 10)), 0.1 * (v + 35) / (1 - np.exp(-(v + 35) / 10))
    rates_n = opening[0], 0.125 * np.exp(-(v + 65) / 80)
    rates_m = opening[1], 4 * np.exp(-(v + 65) / 18)
    rates_h = 0.07 * np.exp(-(v + 50) / 20), 1 / (1 + np.exp(-(v + 35) / 10))
    ions = 120 * m**3 * h * (v - 50) + 20 * n**4 * (v + 80) + 0.3 * (v + 55.4)
    gates = [a * (1 - x) - b * x for x, (a, b) in ((n, rates_n), (m, rates_m), (h, rates_h))]
    return np.array([current - ions, *gates])


def path(model, start, num_steps):
    """The states after each step without noise."""
    step = lambda z, _: (model.following(z),) * 2  # noqa: E731
    return np.asarray(fast_jit(lambda z: jax.lax.scan(step, z, length=num_steps)[1])(jnp.asarray(start)))


def neuron_path(current, dt, milliseconds):
    """v, n, m, h over time; the model keeps gates as logits."""
    start = np.concatenate([START[:1], np.log(START[1:] / (1 - START[1:]))])
    found = path(in_double(HodgkinHuxley(current, dt=dt)), start, round(milliseconds / dt))
    return np.concatenate([found[:, :1], 1 / (1 + np.exp(-found[:, 1:]))], axis=1)


def test_the_neuron_follows_its_equations_to_first_order():
    exact = solve_ivp(lambda t, z: slopes(z, 13.0), (0, 6), START, rtol=1e-9, atol=1e-9, t_eval=[2.0, 6.0]).y.T
    errors = []
    for dt in (0.004, 0.002, 0.001):
        found = neuron_path(13.0, dt, 6)[[round(2 / dt) - 1, -1]]
        errors.append(np.abs(found - exact).max(axis=0))
    assert (errors[-1] < [0.2, 1e-3, 1e-3, 1e-3]).all()
    for coarse, fine in itertools.pairwise(errors):
        np.testing.assert_allclose(fine / coarse, 0.5, rtol=0.15)


def test_a_neuron_rests_and_fires():
    """At rest where the currents balance, at a spike between the two reversal potentials, at whatever step."""

    def balance(v):
        rates = [0.01 * (v + 55) / (1 - np.exp(-(v + 55) / 10)), 0.125 * np.exp(-(v + 65) / 80)]
        rates += [0.1 * (v + 35) / (1 - np.exp(-(v + 35) / 10)), 4 * np.exp(-(v + 65) / 18)]
        rates += [0.07 * np.exp(-(v + 50) / 20), 1 / (1 + np.exp(-(v + 35) / 10))]
        gates = [a / (a + b) for a, b in zip(rates[::2], rates[1::2], strict=True)]
        return slopes((v, *gates), 0.0)[0]

    resting, firing = (neuron_path(current, 0.02, 100)[:, 0] for current in (0.0, 13.0))
    rest: Any = brentq(balance, -80, -57)
    assert -70 < rest < -60
    assert abs(resting[-1] - rest) < 0.05
    late = firing[len(firing) // 4 :]
    spikes = np.flatnonzero((late[1:] > 0) & (late[:-1] <= 0))
    assert len(spikes) >= 4
    assert np.ptp(np.diff(spikes)) <= 2, "at regular times, to rounding of a step"
    assert 30 < late.max() < 50
    assert -80 < late.min() < -70
    for dt in (1.0, 100.0):
        rough = neuron_path(13.0, dt, 50 * dt)
        assert ((rough[:, 0] > -80) & (rough[:, 0] < 50)).all()
        assert ((rough[:, 1:] > 0) & (rough[:, 1:] < 1)).all()


def test_noise_of_the_neuron():
    """Differences from the noise-free step have the stated deviations, and x that of the measurement."""
    model = in_double(HodgkinHuxley())
    drawn = fast_jit(lambda key: simulate(model, 4001, key=key))(jax.random.key(0))
    noise = np.asarray(drawn.latents[1:] - jax.vmap(model.following)(drawn.latents[:-1]))
    stated = np.sqrt(0.02) * np.array([3, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(noise.std(axis=0), stated, rtol=4 / np.sqrt(2 * 4000))
    seen = np.asarray(drawn.observations[:, 0] - drawn.latents[:, 0])
    np.testing.assert_allclose(seen.std(), 5, rtol=4 / np.sqrt(2 * 4001))


def test_held_draws_give_fishers_identity():
    """The derivative is the mean of ∇ log p(x, z) over the final particles' paths."""
    model = Proposed(in_double(HodgkinHuxley(13.0, dt=0.5)), HeldPrior())
    x = model.batch(jnp.asarray([[-60.0, -55.0, -20.0]]), 2)
    bound = FIVO(3, criterion=Always(), gradient="stop-gradient")
    key = jax.random.key(0)

    def value(current):
        return bound(eqx.tree_at(lambda m: m.model.current, model, current), x, key=key).log_evidence[0]

    got = float(fast_jit(jax.grad(value))(model.current))
    kept = ParticleFilter(3, criterion=Always())(model, x, key=key, keep=("latents", "ancestors", "log_weights"))
    latents, ancestors = np.asarray(kept.latents)[0], np.asarray(kept.ancestors)[0]
    index, paths = np.arange(3), []
    for t in range(4, -1, -1):
        index = index if t == 4 else ancestors[t][index]
        paths.append(latents[t][index])
    paths = jnp.asarray(np.stack(paths[::-1], axis=1))

    def joint(current, z):
        return eqx.tree_at(lambda m: m.model.current, model, current).log_joint(
            z, x.observations[0], None if x.mask is None else x.mask[0]
        )

    each = fast_jit(jax.vmap(jax.grad(joint), in_axes=(None, 0)))(model.current, paths)
    expected = float(np.sum(np.exp(np.asarray(kept.log_weights)[0, -1]) * np.asarray(each)))
    assert abs(expected) > 1e-3
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_rare_observations_are_laid_out():
    batch = HodgkinHuxley().batch(np.array([[1.0, 2.0, 3.0]]), 4)
    assert batch.observations[0, :, 0].tolist() == [1, 0, 0, 0, 2, 0, 0, 0, 3]
    assert batch.mask is not None
    assert batch.mask[0, :, 0].tolist() == [t % 4 == 0 for t in range(9)]
    assert batch.lengths.tolist() == [9]


def test_lorenz_follows_its_equations():
    model = in_double(Lorenz63(dt=0.01))
    start = [1.0, 2.0, 20.0]

    def slope(t, z):
        return [10 * (z[1] - z[0]), z[0] * (28 - z[2]) - z[1], z[0] * z[1] - 8 / 3 * z[2]]

    exact = solve_ivp(slope, (0, 1), start, rtol=1e-11, atol=1e-11).y[:, -1]
    np.testing.assert_allclose(path(model, start, 100)[-1], exact, atol=1e-3)
    np.testing.assert_allclose(path(in_double(Lorenz63(dt=0.005)), start, 200)[-1], exact, atol=1e-4)
    side = np.sqrt(8 / 3 * 27)
    for sign in (1, -1):
        fixed = np.array([sign * side, sign * side, 27.0])
        np.testing.assert_allclose(model.following(jnp.asarray(fixed)), fixed, rtol=1e-6)


def test_lorenz_stays_on_two_lobes():
    model = in_double(Lorenz63())
    z = np.asarray(fast_jit(lambda key: simulate(model, 3000, key=key).latents)(jax.random.key(0)))[500:]
    assert np.abs(z[:, :2]).max() < 40
    assert z[:, 2].min() > -1
    assert z[:, 2].max() < 60
    assert 0.2 < (z[:, 0] > 0).mean() < 0.8
    assert ((z[1:, 0] > 0) != (z[:-1, 0] > 0)).sum() > 10, "from one lobe to the other and back"


def test_some_coordinates_are_seen():
    model = Lorenz63(observed=(2,))
    assert float(model.emission(None, jnp.asarray([1.0, 2.0, 3.0]), None).mean[0]) == 3
