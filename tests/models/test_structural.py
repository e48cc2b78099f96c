"""The start of linear-Gaussian models finds the structure that data was made with."""

import numpy as np
import pytest

import fivo
from fivo.models import num_structural_latents, structural_start

STEPS = 160


def made(seed: int = 0, slope: float = 0.05, effect: float = 0.5):
    """Two columns [time, 2] with a slope and a cycle of 12 steps, an input [time, 1], and a mask."""
    rng = np.random.default_rng(seed)
    t = np.arange(STEPS)
    u = rng.normal(size=(STEPS, 1))
    wave = np.stack([np.cos(2 * np.pi * t / 12), -0.5 * np.sin(2 * np.pi * t / 12)], axis=1)
    level = np.cumsum(0.05 * rng.normal(size=(STEPS, 2)), axis=0) + slope * t[:, None]
    x = level + wave + 0.1 * rng.normal(size=(STEPS, 2)) + effect * u
    return x.astype(np.float32), u.astype(np.float32), rng.random((STEPS, 2)) > 0.1


def test_slope_cycle_and_inputs_are_found():
    x, u, mask = made()
    model = structural_start([x], [mask], [u], num_structural_latents(2))
    a = np.asarray(model.transition_matrix)
    np.testing.assert_allclose(a[:2, 2], 0.05, atol=0.02)  # a walk of 160 steps of 0.05 drifts by 0.004 a step
    angle = np.arctan2(a[4, 3], a[3, 3])
    assert 2 * np.pi / angle == pytest.approx(12, rel=0.01)
    np.testing.assert_allclose(np.hypot(*np.asarray(model.emission_matrix)[:, 3:5].T), [1, 0.5], rtol=0.1)
    np.testing.assert_allclose(np.asarray(model.emission_input_matrix)[:, 0], 0.5, atol=0.1)
    # Only one cycle is there: the other latents fade.
    assert np.asarray(model.transition_matrix).diagonal()[5:] == pytest.approx(0.7)


def test_the_start_is_much_likelier_than_walks_alone():
    x, u, mask = made()
    batch = fivo.Batch.from_sequences([x], mask=[mask], inputs=[u])
    whole, walks = (structural_start([x], [mask], [u], latents) for latents in (9, 2))
    assert float(whole.log_evidence(batch)[0]) > float(walks.log_evidence(batch)[0]) + 0.3 * STEPS


def test_noise_has_no_cycles():
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(size=(STEPS, 1)), axis=0).astype(np.float32)
    model = structural_start([walk], None, None, 8)
    assert np.asarray(model.transition_matrix).diagonal()[2:] == pytest.approx(0.7)
    # Variance one a step, and hardly any noise.
    assert float(model.transition_covariance[0, 0]) == pytest.approx(1, abs=5 / np.sqrt(STEPS))


@pytest.mark.parametrize("latents", [1, 2, 3])
def test_fewer_latents_than_columns_follow_what_moves_most(latents):
    rng = np.random.default_rng(1)
    common = np.cumsum(rng.normal(size=(STEPS, 1)), axis=0)
    x = common * np.array([3.0, 1.0, 0.0]) + 0.1 * rng.normal(size=(STEPS, 3))
    model = structural_start([np.float32(x)], None, None, latents)
    leading = np.asarray(model.emission_matrix)[:, 0]
    if latents < 3:
        assert abs(leading @ np.array([3, 1, 0])) / np.linalg.norm([3, 1]) == pytest.approx(1, abs=0.01)
    assert np.isfinite(model.log_evidence(np.float32(x)[None])).all()


def test_short_and_empty_series_have_a_start_too():
    model = structural_start([np.zeros((2, 1), np.float32)], None, None, 8)
    assert np.isfinite(np.asarray(model.log_evidence(np.zeros((1, 2, 1), np.float32)))).all()
