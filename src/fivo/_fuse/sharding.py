"""Loops under `jax.shard_map`: what starts a loop must vary over the mesh as what goes into its steps does."""

from typing import Any

import jax
from jax import lax
from jaxtyping import PyTree


def varying_alike(start: PyTree, inputs: PyTree) -> PyTree:
    """The start of a loop, marked as varying over every axis of the mesh that an input varies over.

    A model's first state is the same on every device, its later ones are not; `lax.scan` wants to be told. Outside of
    `jax.shard_map` nothing varies, and the start is returned as it is.
    """
    axes = frozenset().union(*(_varying(leaf) for leaf in jax.tree.leaves((start, inputs))))
    if not axes:
        return start

    def marked(leaf: Any) -> Any:
        missing = axes - _varying(leaf)
        return lax.pcast(leaf, tuple(sorted(missing)), to="varying") if missing else leaf

    return jax.tree.map(marked, start)


def _varying(leaf: Any) -> frozenset[str]:
    kind = jax.typeof(leaf)
    of_kind = getattr(kind, "manual_axis_type", None)  # its name in JAX 0.10
    return getattr(kind, "vma", None) or getattr(of_kind, "varying", None) or frozenset()
