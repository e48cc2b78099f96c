"""The switch of the compiler, and its thresholds, which were measured on CPUs."""

import os

import jax

CHUNK = 256
"""Steps that are hoisted, looped and sunk together."""
MAX_RESIDUAL_BYTES = 2**30
"""What the backward pass may have stored of all steps before chunks are rematerialised: 1 GiB."""
MAX_STACK_BYTES = 2**24
"""The largest array, over all steps of a loop, that is stored to move work out of it: 16 MiB."""
SMALL_MATRIX = 8
"""The most rows or columns of a matrix whose products are written out entry by entry."""
MANY_PARTICLES = 256
"""The fewest particles for which writing out pays."""

VARIABLE = "FIVO_FUSE"
_chosen: list[bool | None] = [{"0": False, "1": True}.get(os.environ.get(VARIABLE, ""))]


def enabled() -> bool:
    """Whether programs are rewritten for speed: by default on CPUs only, where the thresholds were measured."""
    return jax.default_backend() == "cpu" if _chosen[0] is None else _chosen[0]


class fuse:
    """Turn the loop compiler on or off, for debugging and for measuring what it gains.

    Args:
        on: True to rewrite programs for speed, False to run the plain `lax.scan` and `jax.random` that they mean, None
            for the default: on for CPUs, off elsewhere. The environment variable `FIVO_FUSE` (0 or 1) does the same.

    It acts at once and stays; as a context manager, `with fivo.config.fuse(False):`, it is undone at the end. Values
    agree to rounding either way. Compiled programs are forgotten, because they were made with the other setting.
    """

    def __init__(self, on: bool | None) -> None:
        self._before = _chosen[0]
        _choose(on)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        _choose(self._before)


def _choose(on: bool | None) -> None:
    if on != _chosen[0]:
        _chosen[0] = on
        jax.clear_caches()
