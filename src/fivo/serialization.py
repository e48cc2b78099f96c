"""Arrays of a pytree in one safetensors file: a readable header, atomic writes, nothing ever executed."""

import json
import os
import struct
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from fivo.constants import Constant, constants_of
from fivo.errors import InputError
from fivo.files import write_atomically

Tree = TypeVar("Tree")


def save(path: str | os.PathLike, tree: object, metadata: dict | None = None) -> None:
    """Write the arrays of a pytree (a model, a filter state, an optimizer state) and JSON metadata, atomically.

    Args:
        path: the file, replaced as a whole.
        tree: the arrays; the `Constant`s of its modules are written too.
        metadata: anything that JSON can hold.
    """
    arrays = {name: _to_numpy(leaf) for name, leaf in _named_arrays(tree)} | constants_of(tree)
    content = safetensors_bytes(arrays, {"fivo": json.dumps(metadata or {})})
    write_atomically(path, content)


def load(path: str | os.PathLike, like: Tree) -> Tree:
    """Read arrays written by `save` into the structure of `like`.

    Args:
        path: the file.
        like: a tree of the same structure. Other names, shapes, types or constants than the file's are refused.

    Returns:
        The tree with the file's arrays.
    """
    named, constants = _named_arrays(like), constants_of(like)
    stored = _read(path)
    expected = {name for name, _ in named} | constants.keys()
    if expected != stored.keys():
        odd = sorted(expected ^ stored.keys())[0]
        raise InputError(
            f"{path} does not hold what was expected: {odd!r} is only on one side; "
            "load it with the setting it was saved with."
        )
    leaves = []
    for name, leaf in named:
        wanted, got = _to_numpy(leaf), stored[name]
        if wanted.shape != got.shape or wanted.dtype != got.dtype:
            raise InputError(
                f"{path}: {name!r} is {got.dtype}{list(got.shape)} where {wanted.dtype}{list(wanted.shape)} was "
                "expected; load it with the setting it was saved with."
            )
        leaves.append(_like(leaf, got))
    for name, value in constants.items():
        if Constant(stored[name]) != Constant(value):
            raise InputError(
                f"{path}: the constant {name!r} is not that of the model it is read into; use the data of the file."
            )
    arrays = iter(leaves)
    flat, treedef = jax.tree.flatten(like)
    return jax.tree.unflatten(treedef, [next(arrays) if _is_array(leaf) else leaf for leaf in flat])


def read_metadata(path: str | os.PathLike) -> dict:
    """The JSON metadata of a file written by `save`."""
    with _open(path) as file:
        return json.loads((file.metadata() or {}).get("fivo", "{}"))


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _named_arrays(tree: object) -> list[tuple[str, object]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree) if _is_array(leaf)]


def _is_key(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: Any, array: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array


def _open(path: str | os.PathLike):
    try:
        return safe_open(path, framework="numpy")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path.") from None
    except (SafetensorError, struct.error, OSError) as error:
        raise InputError(
            f"{path} is not a whole safetensors file ({error}); save it again or use another copy."
        ) from None


def _read(path: str | os.PathLike) -> dict[str, np.ndarray]:
    with _open(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (safe_open is not a mapping)
