"""Products of several leading axes, done as products of matrices, mean the same in value and gradient."""

import jax
import jax.numpy as jnp
import numpy as np

from fivo._fuse.products import flatten_products


def mapped(weight, x):
    """A product in the open, one in a call and one in a checkpoint, of many sequences."""

    def one(x):
        y = jnp.tanh(x @ weight)
        again = jax.checkpoint(lambda y: y @ weight.T, prevent_cse=False)(y)
        return {"y": y, "again": again, "called": jax.jit(lambda y: (y @ weight.T) @ weight)(y)}

    return jax.vmap(one)(x)


def given():
    weight_key, x_key = jax.random.split(jax.random.key(0))
    return jax.random.normal(weight_key, (3, 5), jnp.float64), jax.random.normal(x_key, (2, 4, 3), jnp.float64)


def loss(function, *arguments):
    return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(function(*arguments)))


def test_equals_the_function(x64):
    expected = jax.value_and_grad(lambda *g: loss(mapped, *g), argnums=(0, 1))(*given())
    flat = jax.value_and_grad(lambda *g: loss(flatten_products(mapped), *g), argnums=(0, 1))(*given())
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(flat), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_no_gradient_sums_over_several_axes(x64):
    def over_several_axes(function):
        program = str(jax.make_jaxpr(jax.grad(lambda *g: loss(function, *g)))(*given()))
        return program.count("dimension_numbers=(([0, 1], [0, 1])")

    assert over_several_axes(mapped) > 0
    assert over_several_axes(flatten_products(mapped)) == 0
