"""Frames: what the numbers of a sequence must be, whatever they were read from."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np
from jaxtyping import Shaped

from fivo.errors import InputError

Kind = Literal["pianoroll", "waveform"]
# The underscores keep sequences of different lengths from being held to one `time`.
Frames = Shaped[np.ndarray, "_time _dimension"]

DTYPES: dict[Kind, np.dtype] = {"pianoroll": np.dtype(np.uint8), "waveform": np.dtype(np.float32)}
"""What frames are stored as."""

_BLOCK = 1 << 20
"""Numbers that are looked at together."""


def checked_kind(kind: str, where: str) -> Kind:
    """`kind`, if it is one."""
    if kind == "pianoroll" or kind == "waveform":
        return kind
    raise InputError(f"{where}: the kind {kind!r:.60} is unknown; use one of {', '.join(DTYPES)}.")


def checked_positive(value: Any, what: str) -> Any:
    """`value`, if it is a positive number that has a finite inverse."""
    try:
        good = isinstance(value, Real) and float(value) > 0 and 0 < 1 / float(value) < math.inf
    except OverflowError:  # an integer that no float can hold
        good = False
    if not good:
        raise InputError(f"{what} must be positive and finite, got {value!r:.40}; give a positive number.")
    return value


def checked_frames(sequence: Frames, kind: Kind, dimension: int | None, where: str) -> Frames:
    """A sequence as read-only frames of its kind, with `dimension` columns if that is known."""
    # A map of frames that were checked when they were written; looking at them would read the whole file.
    mapped = isinstance(sequence, np.memmap) and not sequence.flags.writeable and sequence.dtype == DTYPES[kind]
    array = sequence if mapped else np.asarray(sequence)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{where} is {array.dtype} of shape {list(array.shape)}, but numbers of shape [time, dimension] are needed."
        )
    if not array.size:
        raise InputError(f"{where} is empty; remove it or give it at least one frame.")
    if dimension is not None and array.shape[1] != dimension:
        raise InputError(f"{where} has {array.shape[1]} columns, but {dimension} are needed.")
    if mapped:
        return array
    if kind == "pianoroll" and not _everywhere(array, lambda block: (block == 0) | (block == 1)):
        raise InputError(f"{where} has entries other than 0 and 1; a pianoroll marks the sounding notes with 1.")
    frames = frozen(array, DTYPES[kind])
    if kind == "waveform" and not _everywhere(frames.reshape(-1), np.isfinite):
        raise InputError(f"{where} has entries that are not finite; remove or replace them.")
    return frames


def frozen(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A read-only copy, or `array` itself if it can serve as one."""
    if array.dtype == dtype and array.flags.c_contiguous and _is_immutable(array):
        return array
    with np.errstate(all="ignore"):  # what overflows becomes infinite, which is refused
        frames = np.array(array, dtype=dtype, order="C")
    frames.setflags(write=False)
    return frames


def _is_immutable(array: np.ndarray) -> bool:
    """Whether neither this array nor one that it is a part of can be written to."""
    while not array.flags.writeable:
        if array.base is None or isinstance(array.base, bytes):
            return True
        if not isinstance(array.base, np.ndarray):
            return False
        array = array.base
    return False


def _everywhere(array: np.ndarray, good: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether all entries are good, looking at a block of rows at a time."""
    rows = max(1, _BLOCK // array[0].size)
    return all(good(array[begin : begin + rows]).all() for begin in range(0, len(array), rows))
