"""Our generator gives JAX's own random numbers, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo._fuse.threefry import straight

DRAWS = {
    "normal": lambda key: jax.random.normal(key, (3, 5)),
    "uniform": lambda key: jax.random.uniform(key, (7,)),
    "exponential": lambda key: jax.random.exponential(key, ()),
    "categorical": lambda key: jax.random.categorical(key, jnp.zeros(5)),
    "bits8": lambda key: jax.random.bits(key, (3,), jnp.uint8),
    "bits16": lambda key: jax.random.bits(key, (3,), jnp.uint16),
    "split": lambda key: jax.random.key_data(jax.random.split(key, 4)),
    "split2": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 7)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_equals_jax(draw):
    keys = jax.random.split(jax.random.key(42), 3)
    np.testing.assert_array_equal(draw(straight(keys[0])), draw(keys[0]))
    np.testing.assert_array_equal(jax.jit(jax.vmap(draw))(straight(keys)), jax.vmap(draw)(keys))


def test_equals_jax_in_float64(x64):
    key = jax.random.key(1)
    np.testing.assert_array_equal(jax.random.normal(straight(key), (9,)), jax.random.normal(key, (9,)))


def test_other_generators_stay():
    key = jax.random.key(0, impl="rbg")
    assert straight(key) is key
