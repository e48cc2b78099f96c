"""Tasks that measure what this machine can do at best, through JAX, and NumPy where that may be faster."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness.task import Task, all_threads

LOOPS = 64


def product(rows: int, inner: int, columns: int) -> Task:
    """`LOOPS` products [rows, inner] x [inner, columns] in one program, each with another left side."""
    xs = jnp.ones((LOOPS, rows, inner)) * 1e-3
    weight = jnp.ones((inner, columns))

    @jax.jit
    def run(xs: jax.Array, weight: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda total, x: (total + x @ weight, None), jnp.zeros((rows, columns)), xs)[0][0, 0]

    return _task(lambda: run(xs, weight), flops=2 * LOOPS * rows * inner * columns)


def large_product(size: int, numpy: bool) -> Task:
    """One product of square matrices, JAX's or NumPy's."""
    if numpy:
        a = np.ones((size, size), np.float32)
        return Task(lambda index: (a @ a)[0, 0], all_threads(), {"flops": 2 * size**3})
    b = jnp.ones((size, size))
    run = jax.jit(lambda b: (b @ b)[0, 0])
    return _task(lambda: run(b), flops=2 * size**3)


def elementwise(name: str) -> Task:
    """A function of an array that fits the cache, `LOOPS` times over."""
    function: Callable[[jax.Array], jax.Array] = {
        "exp": lambda x: jnp.exp(-x),
        "tanh": lambda x: jnp.tanh(x + 1),
        "log": lambda x: jnp.log(x + 2),
    }[name]
    x = jnp.linspace(0, 1, 2**15)
    run = jax.jit(lambda x: jax.lax.fori_loop(0, LOOPS, lambda _, x: function(x), x)[0])
    return _task(lambda: run(x), elements=LOOPS * x.size)


def normals(numpy: bool) -> Task:
    """Draws from the standard normal distribution."""
    size = 2**20
    if numpy:
        generator = np.random.default_rng(0)
        call = lambda index: generator.standard_normal(size, np.float32)[0]  # noqa: E731
        return Task(call, "1", {"elements": size})
    run = jax.jit(lambda key: jax.random.normal(key, (size,)))
    key = jax.random.key(0)
    return _task(lambda: run(key)[0], elements=size)


def _task(run: Callable[[], jax.Array], **facts: int) -> Task:
    run().block_until_ready()  # compiles
    return Task(lambda index: run().block_until_ready(), all_threads(), facts)
