"""Numbers that belong to a model but are not trained."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

__all__ = ["Constant", "constants_of"]


class Constant:
    """An array that is a value, not a parameter: compared and hashed by its content, and never changed.

    Args:
        value: the numbers, copied.

    As a static field of a model (`eqx.field(static=True)`) it is out of reach of `jax.grad` and of every optimizer, and
    `fivo.save` and `fivo.load` write and check it.
    """

    __slots__ = ("_digest", "value")

    value: np.ndarray

    def __init__(self, value: Any) -> None:
        array = np.array(value)
        array.setflags(write=False)
        described = f"{array.dtype.str}{array.shape}".encode()
        object.__setattr__(self, "value", array)
        object.__setattr__(self, "_digest", hashlib.sha256(described + array.tobytes()).digest())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Constant cannot be changed; make another one.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"Constant({self.value.dtype}{list(self.shape)})"

    def __reduce__(self) -> tuple:
        return Constant, (self.value,)


def constants_of(tree: Any, path: str = "") -> dict[str, np.ndarray]:
    """Find the constants in the modules of a tree. They are static fields, so they are not leaves of the tree.

    Args:
        tree: a module, or a dictionary, list or tuple of modules.
        path: what the names begin with.

    Returns:
        The arrays by name, in the form of `jax.tree_util.keystr`: ".emission.offset".
    """
    if isinstance(tree, Constant):
        return {path: tree.value}
    parts: list[tuple[str, Any]] = []
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = [(f".{field.name}", getattr(tree, field.name, None)) for field in dataclasses.fields(tree)]
    elif isinstance(tree, dict):
        parts = [(f"[{key!r}]", value) for key, value in tree.items()]
    elif isinstance(tree, list | tuple):
        parts = [(f"[{index}]", value) for index, value in enumerate(tree)]
    found: dict[str, np.ndarray] = {}
    for name, part in parts:
        found |= constants_of(part, path + name)
    return found
