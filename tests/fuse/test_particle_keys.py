"""Keys of particles: independent uniform bits, without a hash for the keys themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fivo._fuse.threefry import PARTICLE, particle_keys, straight

KEY = straight(jax.random.key(3))
DRAWS = {
    "one number": lambda key: jax.random.bits(key, ()),
    "odd": lambda key: jax.random.bits(key, (5,)),
    "matrix": lambda key: jax.random.bits(key, (2, 3)),
    "after split": lambda key: jax.vmap(lambda k: jax.random.bits(k, (4,)))(jax.random.split(key, 3)),
    "after fold_in": lambda key: jax.random.bits(jax.random.fold_in(key, 7), (4,)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_particle_draws_the_same_alone_and_mapped(draw):
    keys = particle_keys(KEY, 6)
    mapped = jax.jit(jax.vmap(draw))(keys)
    for i in range(6):
        np.testing.assert_array_equal(mapped[i], draw(keys[i]))


def test_no_word_is_drawn_twice():
    """Keys from a key share no hash with numbers from it; n words of 32 bits agree in n² / 2³³ pairs by chance."""
    keys = particle_keys(KEY, 5_000)
    words = np.concatenate([np.ravel(jax.vmap(draw)(keys)) for draw in list(DRAWS.values())[2:]])
    assert words.size == 5_000 * (6 + 12 + 4)
    pairs = words.size - np.unique(words).size
    expected = words.size**2 / 2**33
    assert pairs < expected + 5 * np.sqrt(expected)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_bits_are_uniform_and_uncorrelated(draw):
    bits = np.asarray(jax.vmap(draw)(particle_keys(KEY, 20_000))).reshape(20_000, -1)
    uniform = bits.astype(np.float64) / 2**32
    for column in uniform.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-5
    deviations = (uniform - 0.5) * np.sqrt(12)
    neighbours = (deviations[1:] * deviations[:-1]).mean(axis=0)
    assert np.abs(neighbours).max() < 5 / np.sqrt(20_000)
    between = np.abs(deviations.T @ deviations / 20_000 - np.eye(deviations.shape[1]))
    assert (between - np.diag(np.diag(between))).max(initial=0) < 5 / np.sqrt(20_000)


def test_every_width(x64):
    key = particle_keys(KEY, 1)[0]
    assert jax.random.key_impl(key) == PARTICLE
    wide = np.asarray(jax.random.bits(key, (4,), jnp.uint64))
    assert np.unique(np.concatenate([wide >> 32, wide & 0xFFFFFFFF])).size == 8
    assert jax.random.bits(key, (3,), jnp.uint8).dtype == jnp.uint8
    assert np.isfinite(jax.random.normal(key, (3,), jnp.float64)).all()


def test_other_generators_are_split():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(
        jax.random.key_data(particle_keys(key, 3)), jax.random.key_data(jax.random.split(key, 3))
    )
