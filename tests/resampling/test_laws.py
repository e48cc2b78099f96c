"""The law of the ancestors that a scheme draws: probabilities that sum to one, and the frequencies of its draws."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.resampling import SCHEMES, Soft, law_of
from tests.sentences import assert_one_sentence

LOG_WEIGHTS = jnp.log(jnp.array([0.45, 0.05, 0.3, 0.2]))
NUM_DRAWS = 40_000


@pytest.mark.parametrize("name", ["multinomial", "stratified", "systematic"])
def test_the_law_is_that_of_the_draws(name):
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    drawn = np.asarray(jax.vmap(lambda key: SCHEMES[name](key, LOG_WEIGHTS, 4))(keys))
    rows = jnp.asarray(list(itertools.product(range(4), repeat=4)), jnp.int32)
    law = jax.jit(jax.vmap(lambda row: jnp.sum(law_of(SCHEMES[name])(LOG_WEIGHTS, row))))
    if name == "multinomial":
        # Of draws in order; the scheme sorts them.
        probability = np.exp(np.asarray(law(rows), np.float64))
        sorted_rows = np.sort(rows, axis=1)
    else:
        seen, index = np.unique(drawn, axis=0, return_index=True)
        sorted_rows, probability = seen, np.exp(np.asarray(law(drawn[index]), np.float64))
    np.testing.assert_allclose(probability.sum(), 1, atol=1e-5)
    for row in np.unique(sorted_rows, axis=0):
        expected = probability[(sorted_rows == row).all(axis=1)].sum()
        got = (drawn == row).all(axis=1).mean()
        assert abs(got - expected) < 4.5 * np.sqrt(expected * (1 - expected) / NUM_DRAWS) + 1e-6


@pytest.mark.parametrize("scheme", [SCHEMES["residual"], Soft(), lambda key, log_weights, n: jnp.arange(n)])
def test_what_has_no_law_is_refused(scheme):
    with pytest.raises(InputError) as caught:
        law_of(scheme)
    assert_one_sentence(str(caught.value), "multinomial")
