"""Small products written out mean the same, in value and gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo._fuse.settings import MANY_PARTICLES
from fivo._fuse.settings import SMALL_MATRIX as SMALL
from fivo._fuse.small import write_out


def one_particle(matrix, other, x):
    """Products from both sides, an inner product, sums; inside a call and a checkpoint too."""
    y = jnp.tanh(matrix @ x) + x @ other.T
    inner = jax.jit(lambda y: jnp.dot(y, matrix @ y))(y)
    score = jax.checkpoint(lambda y: jnp.sum((other @ y) ** 2), prevent_cse=False)(y)
    return {"y": y, "score": inner + score, "whole": matrix @ other}


def arguments(size):
    keys = jax.random.split(jax.random.key(size), 3)
    shapes = ((size, size), (size, size), (size,))
    return [jax.random.normal(k, shape, jnp.float64) for k, shape in zip(keys, shapes, strict=True)]


@pytest.mark.parametrize("size", [1, 3, SMALL, SMALL + 1])
def test_equals_the_function(x64, size):
    given = arguments(size)

    def loss(function, *given):
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(function(*given)))

    expected = jax.value_and_grad(lambda *g: loss(one_particle, *g), argnums=(0, 1, 2))(*given)
    written = jax.value_and_grad(lambda *g: loss(write_out(one_particle, MANY_PARTICLES), *g), argnums=(0, 1, 2))(
        *given
    )
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(written), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def products(function, *given):
    return str(jax.make_jaxpr(function)(*given)).count("dot_general")


def test_what_is_written_out(x64):
    small, large = arguments(3), arguments(SMALL + 1)
    assert products(write_out(one_particle, MANY_PARTICLES), *small) == 1  # of two matrices
    assert products(write_out(one_particle, MANY_PARTICLES), *large) == products(one_particle, *large)


def test_the_filter_is_the_same_with_and_without(x64, monkeypatch):
    model = fivo.models.LinearGaussian(
        transition_matrix=0.8 * np.eye(3),
        transition_covariance=0.5 * np.eye(3) + 0.1,
        emission_matrix=np.ones((2, 3)),
        emission_covariance=np.eye(2),
        initial_mean=np.zeros(3),
        initial_covariance=np.eye(3),
        proposal="optimal",
    )
    batch = fivo.Batch.from_sequences([np.ones((4, 2)), np.zeros((3, 2))])

    def both():
        bound = fivo.bounds.FIVO(300)
        return jax.value_and_grad(lambda m: jnp.sum(bound(m, batch, key=jax.random.key(0)).log_evidence))(model)

    written = both()
    monkeypatch.setattr("fivo._fuse.settings.MANY_PARTICLES", 301)
    jax.clear_caches()
    for a, b in zip(jax.tree.leaves(both()), jax.tree.leaves(written), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)
