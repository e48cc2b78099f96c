"""When to resample: decisions on normalised log-weights, steps counted from 0."""

import jax.numpy as jnp
import numpy as np
import pytest

from fivo.resampling import Always, ESSBelow, Every, Never, Schedule
from fivo.weights import normalize

EQUAL = jnp.full((4,), -np.log(4.0), jnp.float32)


def decisions(criterion, log_weights=EQUAL, num_steps=6) -> list[bool]:
    return [bool(criterion(log_weights, jnp.asarray(t))) for t in range(num_steps)]


def test_decisions_by_step():
    assert decisions(Never()) == [False] * 6
    assert decisions(Always()) == [True] * 6
    assert decisions(Every(1)) == [True] * 6
    assert decisions(Every(3)) == [False, False, True, False, False, True]
    assert decisions(Schedule((0, 4))) == [True, False, False, False, True, False]
    assert decisions(Schedule(())) == [False] * 6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("num_particles", [2, 6, 10, 50, 1000])
def test_ess_at_the_threshold_resamples(x64, num_particles, dtype):
    """Half the particles dead and the others equal is an ESS of N/2 exactly; one more alive is above it."""
    for alive, expected in ((num_particles // 2, True), (num_particles // 2 + 1, False)):
        log_weights, _ = normalize(jnp.where(jnp.arange(num_particles) < alive, 0, -jnp.inf).astype(dtype))
        assert decisions(ESSBelow(0.5), log_weights, 1) == [expected]
    equal, _ = normalize(jnp.zeros((num_particles,), dtype))
    assert decisions(ESSBelow(1.0), equal, 1) == [True]
    assert decisions(ESSBelow(0.0), equal, 1) == [False]
