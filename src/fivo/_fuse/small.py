"""Products and sums of a few entries, written out entry by entry.

Mapped over many particles they are then loops that fuse with what surrounds them; a library of matrix products, called
for 100,000 matrices of 4 x 4, spends its time on anything but the products.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn

from fivo._fuse import settings
from fivo._fuse.program import array_type
from fivo._fuse.rewriting import rewrite


def write_out(function: Callable, num_particles: int) -> Callable:
    """The same function of one particle, with products and sums of small matrices and vectors written out.

    Args:
        function: what is mapped over the particles.
        num_particles: how many of them there are; it does not pay for few.
    """
    if not settings.enabled() or num_particles < settings.MANY_PARTICLES:
        return function
    return rewrite(function, _written)


def _written(equation: JaxprEqn, *values: Any) -> jax.Array | None:
    if equation.primitive.name == "dot_general" and _is_small_product(equation):
        return _product(equation, *values)
    if equation.primitive.name == "reduce_sum" and array_type(equation.invars[0]).ndim == 1 and _small(equation):
        return reduce(jnp.add, list(values[0]))
    return None


def _small(equation: JaxprEqn) -> bool:
    return all(size <= settings.SMALL_MATRIX for atom in equation.invars for size in array_type(atom).shape)


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
