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
from jax.extend.core import JaxprEqn, Var

from fivo.smc.loop.program import array_type, read
from fivo.smc.loop.rewriting import rewrite


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

    def weight_gradient(self, xs: jax.Array, cotangents: jax.Array) -> jax.Array:
        """Σ_t x_tᵀ g_t as one product over all steps."""
        rows, columns = xs.shape[-1], cotangents.shape[-1]
        return xs.reshape(-1, rows).T @ cotangents.reshape(-1, columns)


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
    return rewrite(function, _flat)


def _flat(equation: JaxprEqn, *values: Any) -> jax.Array | None:
    if not _is_map(equation) or values[0].ndim < 3:
        return None
    x, weight = values
    return _mapped(equation, x.reshape(-1, x.shape[-1]), weight).reshape(*x.shape[:-1], -1)


def _mapped(equation: JaxprEqn, x: jax.Array, weight: jax.Array) -> jax.Array:
    """x W with the equation's precision."""
    settings = {name: equation.params[name] for name in ("precision", "preferred_element_type")}
    return lax.dot_general(x, weight, (((x.ndim - 1,), (0,)), ((), ())), **settings)


def multiply(
    product: Product, x: jax.Array, weight: jax.Array, transposed: jax.Array, slot: jax.Array | None
) -> list[jax.Array]:
    """The parts of a joint product; backwards, the joint cotangent also goes into `slot`, whose value is never read.

    The weight is given both ways around: turning it in each step backwards costs up to a fifth of the product.
    """

    @jax.custom_vjp
    def parts(x: jax.Array, weight: jax.Array, transposed: jax.Array, slot: jax.Array | None) -> list[jax.Array]:
        return _parts(product.apply(x, weight), product.sizes)

    def forward(x: jax.Array, weight: jax.Array, transposed: jax.Array, slot: jax.Array | None):
        return parts(x, weight, transposed, slot), (x, transposed)

    def backward(residuals: tuple[jax.Array, jax.Array], cotangents: list[jax.Array]):
        x, transposed = residuals
        joint = cotangents[0] if len(cotangents) == 1 else jnp.concatenate(cotangents, axis=-1)
        return product.apply(joint, transposed).astype(x.dtype), product.weight_gradient(x, joint), None, joint

    parts.defvjp(forward, backward)
    return parts(x, weight, transposed, slot)


def _parts(y: jax.Array, sizes: list[int]) -> list[jax.Array]:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [lax.slice_in_dim(y, end - size, end, axis=y.ndim - 1) for size, end in zip(sizes, ends, strict=True)]
