"""Conditional resampling has the scheme's own law, given that a slot continues the reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.resampling import SCHEMES, get_conditional_scheme
from tests.fast import fast_jit
from tests.sentences import assert_one_sentence

WEIGHTS = np.array([0.15, 0.5, 0.25, 0.1])
NUM_DRAWS, REFERENCE = 40_000, 2
CONDITIONAL = {name: get_conditional_scheme(name) for name in ("multinomial", "stratified", "systematic")}


def offspring(ancestors: np.ndarray) -> np.ndarray:
    """A number that says how many children each particle has, one per row."""
    counts = (ancestors[:, :, None] == np.arange(len(WEIGHTS))).sum(axis=1)
    return counts @ (len(WEIGHTS) + 1) ** np.arange(len(WEIGHTS))


@pytest.mark.parametrize("name", CONDITIONAL)
def test_the_law_is_the_schemes_own_given_the_reference(name):
    """P(offspring | reference continues) = P(offspring) n_k / (N w_k); the slot is uniform over the children of k."""
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    log_weights, size = jnp.log(jnp.asarray(WEIGHTS)), len(WEIGHTS)
    conditional = fast_jit(jax.vmap(lambda key: CONDITIONAL[name](key, log_weights, jnp.asarray(REFERENCE))))
    ancestors, slots = (np.asarray(value) for value in conditional(keys))
    assert (ancestors[np.arange(NUM_DRAWS), slots] == REFERENCE).all()

    free = np.asarray(fast_jit(jax.vmap(lambda key: SCHEMES[name](key, log_weights, size)))(keys))
    expected = (free == REFERENCE).sum(axis=1) / (size * WEIGHTS[REFERENCE])
    outcomes = offspring(ancestors)
    for outcome in np.unique(np.concatenate([outcomes, offspring(free)])):
        seen, weighted = outcomes == outcome, expected * (offspring(free) == outcome)
        error = np.hypot(seen.std(), weighted.std()) / np.sqrt(NUM_DRAWS)
        # An outcome seen a handful of times has a standard error that says little.
        assert abs(seen.mean() - weighted.mean()) < 4 * error + 5 / NUM_DRAWS, (name, outcome)

    if name != "multinomial":  # whose slots are uniform by construction, and whose free draws come sorted
        for slot in range(size):
            weighted = (free[:, slot] == REFERENCE) / (size * WEIGHTS[REFERENCE])
            error = np.hypot((slots == slot).std(), weighted.std()) / np.sqrt(NUM_DRAWS)
            assert abs((slots == slot).mean() - weighted.mean()) < 4 * error + 5 / NUM_DRAWS


def test_a_reference_that_hardly_weighs_anything_survives():
    log_weights = jnp.asarray([0.0, -60.0, -1.0])
    for name in CONDITIONAL:
        ancestors, slot = CONDITIONAL[name](jax.random.key(1), log_weights, jnp.asarray(1))
        assert int(ancestors[slot]) == 1


def test_schemes_without_a_conditional_form_are_refused():
    assert get_conditional_scheme(SCHEMES["systematic"]) is CONDITIONAL["systematic"]
    for scheme in ("residual", lambda key, log_weights, num_draws: None):
        with pytest.raises(InputError) as refusal:
            get_conditional_scheme(scheme)
        assert_one_sentence(refusal.value, "conditional")
