"""Products and sums of a few entries, written out entry by entry.

Mapped over many particles they are then loops that fuse with what surrounds them; a library of matrix products, called
for 100,000 matrices of 4 x 4, spends its time on anything but the products.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from fivo.smc.loop.program import array_type, evaluate, read

SMALL = 8
"""The most entries that are written out."""
MANY_PARTICLES = 256
"""The fewest particles for which it pays."""
_CHECKPOINTS = ("checkpoint", "remat2")


def write_out(function: Callable) -> Callable:
    """The same function of one particle, with products of small matrices and vectors written out."""

    def written(*arguments: Any) -> Any:
        flat, structure = jax.tree.flatten(arguments)
        closed, shape = jax.make_jaxpr(lambda *leaves: function(*structure.unflatten(leaves)), return_shape=True)(*flat)
        return jax.tree.structure(shape).unflatten(_run(closed.jaxpr, closed.consts, *flat))

    return written


def _run(jaxpr: Jaxpr, constants: Sequence[Any], *arguments: Any) -> list[Any]:
    environment = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
    for equation in jaxpr.eqns:
        values = [read(environment, atom) for atom in equation.invars]
        if equation.primitive.name == "dot_general" and _is_small_product(equation):
            environment[equation.outvars[0]] = _product(equation, *values)
        elif equation.primitive.name == "reduce_sum" and array_type(equation.invars[0]).ndim == 1 and _small(equation):
            environment[equation.outvars[0]] = reduce(jnp.add, list(values[0]))
        elif equation.primitive.name in ("jit", "pjit", *_CHECKPOINTS):
            environment.update(zip(equation.outvars, _call(equation, values), strict=True))
        else:
            evaluate([equation], environment)
    return [read(environment, atom) for atom in jaxpr.outvars]


def _call(equation: JaxprEqn, values: list[Any]) -> list[Any]:
    called = equation.params["jaxpr"]
    jaxpr, constants = (called.jaxpr, called.consts) if isinstance(called, ClosedJaxpr) else (called, ())

    def run(*arguments: Any) -> list[Any]:
        return _run(jaxpr, constants, *arguments)

    if equation.primitive.name in _CHECKPOINTS:
        run = jax.checkpoint(run, prevent_cse=equation.params["prevent_cse"], policy=equation.params["policy"])
    return run(*values)


def _small(equation: JaxprEqn) -> bool:
    return all(size <= SMALL for atom in equation.invars for size in array_type(atom).shape)


def _is_small_product(equation: JaxprEqn) -> bool:
    left, right = (array_type(atom) for atom in equation.invars)
    (contract, _), (batch, _) = equation.params["dimension_numbers"]
    return (
        _small(equation)
        and len(contract) == 1
        and not batch
        and sorted((left.ndim, right.ndim)) in ([1, 1], [1, 2])
        and left.dtype == right.dtype == array_type(equation.outvars[0]).dtype
        and jnp.issubdtype(left.dtype, jnp.floating)
    )


def _product(equation: JaxprEqn, left: jax.Array, right: jax.Array) -> jax.Array:
    """Σ_j a_ij x_j, for each i if there is more than one."""
    ((contract,), (contract_right,)), _ = equation.params["dimension_numbers"]
    if left.ndim == right.ndim == 1:
        return _inner(left, right)
    matrix, axis, x = (left, contract, right) if left.ndim == 2 else (right, contract_right, left)
    rows = matrix if axis == 1 else matrix.T
    return jnp.stack([_inner(row, x) for row in rows])


def _inner(a: jax.Array, x: jax.Array) -> jax.Array:
    return reduce(jnp.add, [a[j] * x[j] for j in range(x.shape[0])])
