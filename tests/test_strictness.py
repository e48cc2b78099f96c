"""The strictness that `conftest.py` switches on is on."""

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

from fivo.resampling import multinomial
from fivo.weights import normalize


def test_shape_annotations_are_enforced():
    with pytest.raises(TypeCheckError):
        multinomial(jax.random.key(0), jnp.zeros((2, 3)), 3)
    with pytest.raises(TypeCheckError):
        normalize(jnp.zeros((3,), jnp.int32))


def test_ranks_do_not_mix():
    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.zeros((2, 3)) + jnp.zeros((3,))
