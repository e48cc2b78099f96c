"""Strict JAX for every test: shape annotations are enforced and arrays of different rank do not mix silently."""

from collections.abc import Iterator

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports the package: only modules loaded from here on have their annotations checked.
install_import_hook("fivo", "beartype.beartype")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
