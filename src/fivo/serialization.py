"""The arrays of a pytree in one safetensors file: a readable header, a checksum, nothing ever executed."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from fivo.constants import Constant, constants_of
from fivo.errors import InputError
from fivo.files import tensors
from fivo.files.tensors import plain_array, read_tensors, write_tensors

__all__ = ["from_arrays", "load", "read_metadata", "save", "to_arrays"]

Tree = TypeVar("Tree")


def save(path: str | os.PathLike, tree: object, metadata: dict | None = None) -> None:
    """Write the arrays of a pytree, atomically and with a checksum.

    Args:
        path: The file; folders above it are made.
        tree: A model, a filter state, an optimizer state: any pytree. What is no array in it is not written, but for
            the `Constant`s of its modules.
        metadata: A dictionary that JSON can hold, read back by `fivo.serialization.read_metadata`.
    """
    write_tensors(path, to_arrays(tree), metadata or {})


def load(path: str | os.PathLike, like: Tree) -> Tree:
    """Read arrays written by `save`, refusing a damaged file and any other names, shapes or types.

    Args:
        path: The file.
        like: A pytree with the structure that was saved; its leaves that are not arrays are kept.

    Returns:
        A pytree like `like`, with the arrays of the file.
    """
    return from_arrays(read_tensors(path)[0], like, path)


def read_metadata(path: str | os.PathLike) -> dict:
    """Read the JSON metadata of a file written by `save`, which must be whole.

    Args:
        path: The file.

    Returns:
        The dictionary that was given to `save`.
    """
    return tensors.read_metadata(path)


def to_arrays(tree: object) -> dict[str, np.ndarray]:
    """Take a pytree apart.

    Args:
        tree: Any pytree.

    Returns:
        Its arrays and `Constant`s, by the names that `save` gives them.
    """
    return {name: _to_numpy(leaf) for name, leaf in _named_arrays(tree)} | constants_of(tree)


def from_arrays(arrays: Mapping[str, np.ndarray], like: Tree, where: str | os.PathLike) -> Tree:
    """Put a pytree together that `to_arrays` took apart; other names, shapes or types are refused.

    Args:
        arrays: Arrays by name.
        like: A pytree of the structure that was taken apart; everything in it but arrays is kept.
        where: The file that the arrays are from, for messages.

    Returns:
        A pytree like `like`, with these arrays.
    """
    named, constants = _named_arrays(like), constants_of(like)
    expected = {name for name, _ in named} | constants.keys()
    if expected != arrays.keys():
        odd = sorted(expected ^ arrays.keys())[0]
        raise InputError(
            f"{where} must hold the arrays of what it is loaded into, but {odd!r} is only in one of the two; "
            "load it with the settings it was saved with."
        )
    leaves = []
    for name, leaf in named:
        wanted, got = _to_numpy(leaf), arrays[name]
        if wanted.shape != got.shape or wanted.dtype != got.dtype:
            raise InputError(
                f"{where}: {name!r} must be {wanted.dtype}{list(wanted.shape)}, got {got.dtype}{list(got.shape)}; load "
                "it with the settings it was saved with."
            )
        leaves.append(_like(leaf, got))
    for name, value in constants.items():
        if Constant(arrays[name]) != Constant(value):
            raise InputError(
                f"{where}: the constant {name!r} is not that of the model it is read into; use the data of the file."
            )
    restored = iter(leaves)
    flat, treedef = jax.tree.flatten(like)
    return jax.tree.unflatten(treedef, [next(restored) if _is_array(leaf) else leaf for leaf in flat])


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _named_arrays(tree: object) -> list[tuple[str, object]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree) if _is_array(leaf)]


def _is_key(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf: Any) -> np.ndarray:
    return plain_array(np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf))


def _like(leaf: Any, array: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array
