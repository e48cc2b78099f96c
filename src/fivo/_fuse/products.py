"""Matrix products with loop-invariant weights: those of one input are done as one, their weight gradients later.

Inside the backward loop a weight's gradient would be a small product added to a large accumulator at every step.
Instead the loop stores the product's input (forward) and the cotangent of its output (backward), and one large
product over all steps follows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import JaxprEqn, Var

from fivo._fuse.program import array_type, read
from fivo._fuse.rewriting import rewrite
from fivo._fuse.settings import enabled


@dataclass
class Product:
    """x W₁, x W₂, … of one input x as x [W₁ W₂ …]."""

    equations: list[JaxprEqn]

    @property
    def operand(self) -> Var:
        return cast(Var, self.equations[0].invars[0])

    @property
    def sizes(self) -> list[int]:
        return [array_type(equation.invars[1]).shape[1] for equation in self.equations]

    def weight(self, environment: dict[Var, Any]) -> jax.Array:
        """[W₁ W₂ …]."""
        weights = [read(environment, equation.invars[1]) for equation in self.equations]
        return weights[0] if len(weights) == 1 else jnp.concatenate(weights, axis=1)

    def apply(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        """x [W₁ W₂ …]."""
        return _mapped(self.equations[0], x, weight)

    def apply_transposed(self, x: jax.Array, transposed: jax.Array) -> jax.Array:
        """x [W₁ W₂ …] from the transposed weight."""
        return _contracted(self.equations[0], x, transposed, 1)

    def apply_to_all(self, xs: jax.Array, weight: jax.Array) -> jax.Array:
        """x_t [W₁ W₂ …] of all steps, as one product of two matrices: so is then the gradient Σ_t x_tᵀ g_t."""
        return self.apply(xs.reshape(-1, xs.shape[-1]), weight).reshape(*xs.shape[:-1], -1)


def find_products(equations: list[JaxprEqn], invariant: set[Var]) -> dict[int, Product]:
    """Products with invariant weights, keyed by the position of the first of each group."""
    groups: dict[Any, int] = {}
    found: dict[int, Product] = {}
    for index, equation in enumerate(equations):
        if not _is_product(equation, invariant):
            continue
        parameters = equation.params
        key = (equation.invars[0], parameters["dimension_numbers"], parameters["preferred_element_type"])
        first = groups.setdefault(key, index)
        if first == index:
            found[index] = Product([])
        found[first].equations.append(equation)
    return found


def _is_product(equation: JaxprEqn, invariant: set[Var]) -> bool:
    """x W with a matrix W that does not change in the loop."""
    if not _is_map(equation):
        return False
    x, weight = equation.invars
    return isinstance(x, Var) and x not in invariant and weight in invariant


def _is_map(equation: JaxprEqn) -> bool:
    """x W with a matrix W, contracted over x's last axis."""
    if equation.primitive.name != "dot_general" or len(equation.invars) != 2:
        return False
    x, weight = (array_type(atom) for atom in equation.invars)
    (contract_x, contract_w), (batch_x, batch_w) = equation.params["dimension_numbers"]
    return (
        weight.ndim == 2
        and not batch_x
        and not batch_w
        and tuple(contract_w) == (0,)
        and tuple(contract_x) == (x.ndim - 1,)
        and jnp.issubdtype(weight.dtype, jnp.floating)
    )


def flatten_products(function: Callable) -> Callable:
    """The same function, with products of several leading axes done as products of matrices.

    The weight's gradient is then one as well; as a sum over several axes it would begin with a transposed copy, which
    takes longer than the product.
    """
    return rewrite(function, _flat) if enabled() else function


def _flat(equation: JaxprEqn, *values: Any) -> jax.Array | None:
    if not _is_map(equation) or values[0].ndim < 3:
        return None
    x, weight = values
    return _mapped(equation, x.reshape(-1, x.shape[-1]), weight).reshape(*x.shape[:-1], -1)


def _mapped(equation: JaxprEqn, x: jax.Array, weight: jax.Array) -> jax.Array:
    """x W with the equation's precision."""
    return _contracted(equation, x, weight, 0)


def _contracted(equation: JaxprEqn, x: jax.Array, weight: jax.Array, axis: int) -> jax.Array:
    precision = {name: equation.params[name] for name in ("precision", "preferred_element_type")}
    return lax.dot_general(x, weight, (((x.ndim - 1,), (axis,)), ((), ())), **precision)


def multiply(
    product: Product, x: jax.Array, weight: jax.Array, transposed: jax.Array, slot: jax.Array | None
) -> list[jax.Array]:
    """The parts of a joint product; backwards, the joint cotangent also goes into `slot`, whose value is never read.

    The weight is given both ways around: turning it in each step backwards costs up to a fifth of the product.
    """

    @jax.custom_jvp
    def joint(x: jax.Array, weight: jax.Array, transposed: jax.Array, slot: jax.Array | None) -> jax.Array:
        return product.apply(x, weight)

    def tangent(primals: tuple, tangents: tuple) -> tuple[jax.Array, Any]:
        x, weight, transposed, slot = primals
        by_x, by_weight, _, by_slot = tangents
        y = joint(x, weight, transposed, slot)
        terms = [] if by_slot is None or _is_zero(by_slot) else [by_slot]
        if not _is_zero(by_x):
            # Contracted so that its transpose reads `transposed` in the order in which it lies in memory.
            terms.append(product.apply_transposed(by_x, transposed))
        if not _is_zero(by_weight):
            terms.append(product.apply(x, by_weight))
        return y, sum(terms[1:], terms[0]) if terms else jnp.zeros_like(y)

    joint.defjvp(tangent, symbolic_zeros=True)
    return list(lax.split(joint(x, weight, transposed, slot), product.sizes, axis=x.ndim - 1))


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero)
