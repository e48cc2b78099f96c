"""What tells one object from another across processes: structure, shapes, types and values, but no addresses."""

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fivo.constants import Constant

DIGITS = 16


def digest(thing: object) -> str:
    """A short digest of a model, a bound or an optimizer's state.

    Two objects of equal structure, shapes, types and values have the same one, in any process. Of functions it sees
    their qualified names, and what `functools.partial` gives them: what a closure holds is invisible to it.

    Args:
        thing: The object.

    Returns:
        Hexadecimal digits.
    """
    seen = hashlib.sha256()
    for part in _parts(thing, ""):
        seen.update(part)
    return seen.hexdigest()[:DIGITS]


def name_of(thing: object) -> str:
    """What to call an object of a user's.

    Args:
        thing: The object.

    Returns:
        The name of a function, or of a class.
    """
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return str(getattr(named, "__qualname__", named)).replace("<locals>.", "")


def _parts(thing: Any, path: str) -> Iterator[bytes]:
    if isinstance(thing, Constant):
        thing = thing.value
    if isinstance(thing, jax.Array) and jnp.issubdtype(thing.dtype, jax.dtypes.prng_key):
        thing = jax.random.key_data(thing)
    if isinstance(thing, jax.Array | np.ndarray | np.generic):
        array = np.asarray(thing)
        yield f"{path}:{array.dtype}{array.shape}\n".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(thing, jax.ShapeDtypeStruct):
        yield f"{path}:{thing.dtype}{thing.shape}\n".encode()
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        yield f"{path}:{name_of(thing)}\n".encode()
        for name in sorted(thing.__dataclass_fields__):
            yield from _parts(getattr(thing, name, None), f"{path}.{name}")
    elif isinstance(thing, functools.partial):
        yield f"{path}:partial\n".encode()
        yield from _parts((thing.func, thing.args, thing.keywords), path)
    elif isinstance(thing, Mapping):
        for name in sorted(thing, key=str):
            yield from _parts(thing[name], f"{path}[{name!r}]")
    elif isinstance(thing, tuple | list):
        yield f"{path}:{name_of(type(thing))}{len(thing)}\n".encode()
        for index, part in enumerate(thing):
            yield from _parts(part, f"{path}[{index}]")
    elif thing is None or isinstance(thing, str | bytes | int | float | complex | bool):
        yield f"{path}={thing!r}\n".encode()
    else:
        yield f"{path}:{name_of(thing)}\n".encode()
