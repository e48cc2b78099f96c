"""Cheap work that the backward pass does again instead of storing what it needs of it."""

from collections.abc import Callable
from typing import Any

import jax

from fivo._fuse.settings import enabled


def recompute(function: Callable, *arguments: Any) -> Any:
    """The value of a function that the backward pass computes again, instead of storing its intermediate values."""
    if not enabled():
        return function(*arguments)
    # Closes over its arguments: as such, parameters of a distribution come in another order in every process (numpyro
    # keeps their names in a set), and a program that another process has compiled would not be found.
    return jax.checkpoint(lambda: function(*arguments), prevent_cse=False)()
