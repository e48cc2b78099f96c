"""The filter's loop means the same as `lax.scan`, in value and gradient, whatever it moves where."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import fivo
from fivo._fuse import loop, settings
from fivo._fuse.placement import split
from fivo._fuse.program import num_bytes, trace, variables
from fivo._fuse.threefry import particle_keys, straight

STEPS, ROWS, SIZE = 7, 3, 4


def body(weights, carry, inputs):
    """Two products of one input, random draws, data-only work, and an output that nothing else needs."""
    state, count = carry
    x, key = inputs
    noise = jax.random.normal(key, state.shape, state.dtype)
    drive = jnp.tanh(x @ weights["input"])
    gate = jax.nn.sigmoid(state @ weights["gate"])
    following = gate * jnp.tanh(state @ weights["state"] + drive) + 0.1 * noise
    order = lax.stop_gradient(jnp.argsort(jnp.sum(following, axis=-1)))
    return (following[order], count + 1), jnp.sum((following @ weights["output"]) ** 2, axis=-1) + count


def problem(seed=0, steps=STEPS):
    keys = jax.random.split(jax.random.key(seed), 6)
    weights = {
        name: 0.5 * jax.random.normal(key, (SIZE, SIZE), jnp.float64)
        for name, key in zip(("input", "gate", "state", "output"), keys, strict=False)
    }
    start = (jax.random.normal(keys[4], (ROWS, SIZE), jnp.float64), jnp.zeros((), jnp.int32))
    inputs = (jax.random.normal(keys[5], (steps, ROWS, SIZE), jnp.float64), jax.random.split(keys[0], steps))
    return weights, start, inputs


def loss(scan, weights, start, inputs):
    (state, _), outputs = scan(lambda carry, x: body(weights, carry, x), start, inputs)
    return jnp.sum(jnp.sin(outputs)) + jnp.sum(state**2)


@pytest.mark.parametrize("chunk", [256, 3])
@pytest.mark.parametrize("remembered", [2**30, 0])
def test_equals_lax_scan(x64, monkeypatch, chunk, remembered):
    monkeypatch.setattr(settings, "CHUNK", chunk)
    monkeypatch.setattr(settings, "MAX_RESIDUAL_BYTES", remembered)
    weights, (state, count), (x, keys) = problem()

    def both(scan):
        return jax.jit(jax.value_and_grad(lambda w, s, x: loss(scan, w, (s, count), (x, keys)), argnums=(0, 1, 2)))(
            weights, state, x
        )

    expected, got = both(lax.scan), both(loop.scan)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def test_second_derivatives_equal_those_of_lax_scan(x64):
    weights, (state, count), (x, keys) = problem()

    def steepness(scan):
        def slope(w, s):
            gradient = jax.grad(lambda w, s: loss(scan, w, (s, count), (x, keys)), argnums=(0, 1))(w, s)
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient))

        return jax.jit(jax.grad(slope, argnums=(0, 1)))(weights, state)

    for a, b in zip(jax.tree.leaves(steepness(lax.scan)), jax.tree.leaves(steepness(loop.scan)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def test_work_is_moved_out_of_the_loop(x64):
    weights, start, inputs = problem()
    first = jax.tree.map(lambda leaf: leaf[0], inputs)
    leaves, tree = jax.tree.flatten((start, first))
    program, _ = trace(lambda *flat: body(weights, *jax.tree.unflatten(tree, flat)), *leaves)
    parts = split(program, 2, STEPS)

    def names(equations):
        return [equation.primitive.name for equation in equations]

    assert "random_bits" in names(parts.before)
    assert "random_bits" not in names(parts.inside)
    assert names(parts.before).count("dot_general") == 1
    assert names(parts.inside).count("dot_general") == 2
    assert names(parts.after).count("dot_general") == 1
    joined = loop.Loop(program, 2, STEPS).products
    assert [len(product.equations) for product in joined.values()] == [2]


def test_nothing_large_is_stored_for_all_steps(x64, monkeypatch):
    monkeypatch.setattr("fivo._fuse.settings.MAX_STACK_BYTES", 8)
    weights, start, inputs = problem()
    first = jax.tree.map(lambda leaf: leaf[0], inputs)
    leaves, tree = jax.tree.flatten((start, first))
    program, _ = trace(lambda *flat: body(weights, *jax.tree.unflatten(tree, flat)), *leaves)
    parts = split(program, 2, STEPS)
    assert parts.before == []
    assert sum(equation.primitive.name == "dot_general" for equation in parts.inside) == 4


def test_particle_keys_are_arranged_where_they_are_drawn_from(monkeypatch):
    """Draws too large to store stay inside, and their keys, which are one key and N numbers, with them."""
    particles, steps = 100, 5
    monkeypatch.setattr("fivo._fuse.settings.MAX_STACK_BYTES", steps * particles * 12)

    def step(carry, key):
        return carry + jax.vmap(lambda k: jax.random.normal(k, (8,)))(particle_keys(key, particles)), carry

    start, keys = jnp.zeros((particles, 8)), straight(jax.random.split(jax.random.key(0), steps))
    program, _ = trace(step, start, keys[0])
    parts = split(program, 1, steps)
    assert "random_bits" in [equation.primitive.name for equation in parts.inside]
    entering = {v for equation in parts.inside for v in variables(equation.invars)}
    made = [v for equation in parts.before for v in equation.outvars if v in entering]
    assert all(num_bytes(v) <= 12 for v in made)
    got, expected = jax.jit(lambda: (loop.scan(step, start, keys)[0], lax.scan(step, start, keys)[0]))()
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_maps_over_a_batch(x64):
    weights, (state, count), (x, keys) = problem()
    states = jnp.stack([state, 2 * state])

    def gradient(scan):
        return jax.vmap(lambda s: jax.grad(lambda w: loss(scan, w, (s, count), (x, keys)))(weights))(states)

    for a, b in zip(jax.tree.leaves(gradient(lax.scan)), jax.tree.leaves(gradient(loop.scan)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def scalar(scan):
    """The loss as a function of everything that can be differentiated."""
    _, (_, count), (_, keys) = problem()
    return lambda moving: loss(scan, moving[0], (moving[1], count), (moving[2], keys))


def tangent_of(tree):
    leaves, structure = jax.tree.flatten(tree)
    rng = np.random.default_rng(5)
    return structure.unflatten([jnp.asarray(rng.normal(size=leaf.shape)) for leaf in leaves])


TRANSFORMATIONS = {
    "grad": lambda f, at: jax.grad(f)(at),
    "jvp": lambda f, at: jax.jvp(f, (at,), (tangent_of(at),)),
    "jvp of jit": lambda f, at: jax.jvp(jax.jit(f), (at,), (tangent_of(at),)),
    "jit of jvp": lambda f, at: jax.jit(lambda at: jax.jvp(f, (at,), (tangent_of(at),)))(at),
    "linearize": lambda f, at: jax.linearize(f, at)[1](tangent_of(at)),
    "jvp of weights alone": lambda f, at: jax.jvp(lambda w: f((w, *at[1:])), (at[0],), (tangent_of(at[0]),)),
    "jvp of data alone": lambda f, at: jax.jvp(lambda x: f((*at[:2], x)), (at[2],), (tangent_of(at[2]),)),
    "jacfwd": lambda f, at: jax.jacfwd(lambda s: f((at[0], s, at[2])))(at[1]),
    "vmap of grad": lambda f, at: jax.vmap(jax.grad(f))(jax.tree.map(lambda leaf: jnp.stack([leaf, 0.5 * leaf]), at)),
    "vmap of jvp": lambda f, at: jax.vmap(lambda at: jax.jvp(f, (at,), (tangent_of(at),)))(
        jax.tree.map(lambda leaf: jnp.stack([leaf, 0.5 * leaf]), at)
    ),
    "grad of checkpoint": lambda f, at: jax.grad(jax.checkpoint(f))(at),
    "hessian": lambda f, at: jax.hessian(lambda s: f((at[0], s, at[2])))(at[1]),
    "forward over reverse": lambda f, at: jax.jvp(jax.grad(f), (at,), (tangent_of(at),)),
    "reverse over forward": lambda f, at: jax.grad(lambda at: jax.jvp(f, (at,), (tangent_of(at),))[1])(at),
}


@pytest.mark.parametrize("transform", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)
def test_every_transformation_equals_that_of_lax_scan(x64, transform):
    weights, (state, _), (x, _) = problem()
    at = (weights, state, x)
    expected, got = (jax.tree.leaves(transform(scalar(scan), at)) for scan in (lax.scan, loop.scan))
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11)


def test_the_switch_leaves_a_plain_scan(x64):
    weights, start, inputs = problem()

    def program():
        return str(jax.make_jaxpr(lambda w: loss(loop.scan, w, start, inputs))(weights))

    fused = program()
    with fivo.config.fuse(False):
        plain = program()
    assert plain == str(jax.make_jaxpr(lambda w: loss(lax.scan, w, start, inputs))(weights))
    assert fused == program() != plain
