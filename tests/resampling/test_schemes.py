"""Every resampling scheme: offspring in proportion to the weights, with -inf and other extremes defined."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.resampling import SCHEMES
from tests.helpers import mean_within

schemes = pytest.mark.parametrize("scheme", SCHEMES)
economical = pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "multinomial"])
WEIGHTS = np.array([0.31, 0.02, 0.0, 0.17, 0.3, 0.2, 0.0])
NUM_KEYS = 20_000


@partial(jax.jit, static_argnums=(0, 3))
def ancestors(scheme: str, key: jax.Array, log_weights: jax.Array, num_draws: int) -> jax.Array:
    return SCHEMES[scheme](key, log_weights, num_draws)


def offspring(indices: jax.Array, num_particles: int) -> np.ndarray:
    """How many draws each particle got."""
    return np.bincount(np.asarray(indices), minlength=num_particles)


def log_weights_of(weights: np.ndarray, dtype: str = "float32") -> jax.Array:
    with np.errstate(divide="ignore"):
        return jnp.asarray(np.log(weights), dtype)


@partial(jax.jit, static_argnums=(0, 2))
def counts_over_keys(scheme: str, log_weights: jax.Array, num_draws: int) -> jax.Array:
    keys = jax.random.split(jax.random.key(0), NUM_KEYS)
    drawn = jax.vmap(lambda key: SCHEMES[scheme](key, log_weights, num_draws))(keys)
    return jnp.sum(drawn[:, :, None] == jnp.arange(log_weights.shape[0])[None, None, :], axis=1)


@schemes
@pytest.mark.parametrize(("dtype", "num_draws"), [("float32", 7), ("float64", 5)])
def test_expected_offspring_are_proportional_to_the_weights(x64, scheme, dtype, num_draws):
    # Weights that are not normalised are as good as those that are.
    counts = np.asarray(counts_over_keys(scheme, log_weights_of(WEIGHTS * 50, dtype), num_draws))
    assert (counts.sum(axis=1) == num_draws).all()
    assert (counts[:, WEIGHTS == 0] == 0).all()
    assert mean_within(counts, num_draws * WEIGHTS)


def test_multinomial_draws_are_independent():
    """Their counts have the multinomial's covariance, N (diag w - w wᵀ)."""
    counts = np.asarray(counts_over_keys("multinomial", log_weights_of(WEIGHTS), 7))
    deviation = counts - 7 * WEIGHTS
    products = deviation[:, :, None] * deviation[:, None, :]
    assert mean_within(products, 7 * (np.diag(WEIGHTS) - np.outer(WEIGHTS, WEIGHTS)))


@economical
def test_the_other_schemes_vary_less_than_multinomial(scheme):
    deviation = np.asarray(counts_over_keys(scheme, log_weights_of(WEIGHTS), 7)) - 7 * WEIGHTS
    assert (deviation**2).mean(axis=0).sum() < 0.8 * (7 * WEIGHTS * (1 - WEIGHTS)).sum()


def bounds_of_counts(scheme: str, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fewest and the most offspring that a scheme may give for N w, rounding of whole numbers forgiven."""
    below, above = np.floor(expected + 1e-4), np.ceil(expected - 1e-4)
    near = np.abs(expected - np.round(expected)) < 1e-4
    floor, ceiling = np.where(near, np.round(expected), below), np.where(near, np.round(expected), above)
    everything = np.full_like(expected, np.round(expected.sum()))
    return {
        "multinomial": (np.zeros_like(expected), everything),
        "stratified": (np.maximum(floor - 1, 0), ceiling + 1),
        "systematic": (np.where(near, floor - 1, floor), np.where(near, ceiling + 1, ceiling)),
        "residual": (np.where(near, floor - 1, floor), everything),
    }[scheme]


@schemes
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_weights(scheme, data):
    """Living particles only, and no more and no fewer offspring than the scheme promises."""
    num_particles, num_draws = data.draw(st.sampled_from([(1, 1), (5, 5), (16, 16), (5, 11)]))
    log_weight = st.one_of(st.floats(-40, 40, width=32), st.just(-np.inf))
    log_weights = np.array(
        data.draw(st.lists(log_weight, min_size=num_particles, max_size=num_particles)), dtype=np.float32
    )
    key = jax.random.key(data.draw(st.integers(0, 2**31 - 1)))
    indices = ancestors(scheme, key, jnp.asarray(log_weights), num_draws)
    assert indices.shape == (num_draws,)
    assert indices.dtype == jnp.int32
    assert ((indices >= 0) & (indices < num_particles)).all()

    alive = ~np.isneginf(log_weights)
    top = log_weights.max() if alive.any() else 0
    weights = np.exp(log_weights.astype(np.float64) - top) if alive.any() else np.ones(num_particles)
    counts = offspring(indices, num_particles)
    if alive.any():
        assert (counts[~alive] == 0).all()
    least, most = bounds_of_counts(scheme, num_draws * weights / weights.sum())
    assert (least <= counts).all()
    assert (counts <= most).all()


@economical
@pytest.mark.parametrize(("dtype", "num_particles"), [("float32", 7), ("float32", 1000), ("float64", 11)])
def test_equal_weights_keep_every_particle(x64, scheme, dtype, num_particles):
    log_weights = jnp.full((num_particles,), -np.log(num_particles), dtype)
    assert (offspring(ancestors(scheme, jax.random.key(2), log_weights, num_particles), num_particles) == 1).all()


@schemes
@pytest.mark.parametrize("survivor", [0, 3, 6])
def test_all_weight_on_one_particle(scheme, survivor):
    log_weights = jnp.full((7,), -jnp.inf).at[survivor].set(-300.0)
    assert (ancestors(scheme, jax.random.key(0), log_weights, 7) == survivor).all()


@schemes
def test_one_particle(scheme):
    for log_weight in (0.0, -1e30, -np.inf):
        assert (ancestors(scheme, jax.random.key(0), jnp.full((1,), log_weight), 3) == 0).all()


@schemes
def test_when_all_particles_are_dead_the_draws_are_those_of_equal_weights(scheme):
    dead, equal = (ancestors(scheme, jax.random.key(1), jnp.full((7,), w), 7) for w in (-jnp.inf, -np.log(7)))
    assert (dead == equal).all()


@schemes
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_particles_take_linear_memory(x64, scheme, dtype):
    num_particles = 100_000
    log_weights = jax.random.normal(jax.random.key(0), (num_particles,), dtype) * 2
    log_weights = jnp.where(jnp.arange(num_particles) % 3 == 0, -jnp.inf, log_weights)
    compiled = ancestors.lower(scheme, jax.random.key(1), log_weights, num_particles).compile()
    # Some dozens of arrays of N entries, where one of N x N would be 100,000 of them.
    assert compiled.memory_analysis().temp_size_in_bytes < 50 * num_particles * 8

    indices = np.asarray(compiled(jax.random.key(1), log_weights))
    weights = np.exp(np.asarray(log_weights, np.float64))
    expected = num_particles * weights / weights.sum()
    counts = offspring(indices, num_particles)
    assert (counts[weights == 0] == 0).all()
    # Blocks of particles: the multinomial's standard deviation is an upper bound for every scheme.
    blocks, expected_blocks = counts.reshape(100, -1).sum(axis=1), expected.reshape(100, -1).sum(axis=1)
    assert (np.abs(blocks - expected_blocks) < 5 * np.sqrt(expected_blocks)).all()
    assert np.isclose(counts @ np.arange(num_particles), expected @ np.arange(num_particles), rtol=5e-3)
