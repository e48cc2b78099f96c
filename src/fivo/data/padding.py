"""Sequences of different lengths in one array."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int32, Shaped
from numpy.typing import DTypeLike

from fivo.data.frames import Frames


def pad(
    sequences: Sequence[Frames], indices: Int[np.ndarray, " batch"], padded_length: int, dtype: DTypeLike = np.float32
) -> tuple[Shaped[np.ndarray, "batch time dimension"], Int32[np.ndarray, " batch"]]:
    """Pad chosen sequences with zeros.

    Args:
        sequences: Arrays [time, dim].
        indices: Which of them [batch]; -1 is an empty slot.
        padded_length: The length to pad to.
        dtype: The number type of the result.

    Returns:
        The padded sequences [batch, time, dim], and their lengths [batch], 0 for empty slots.
    """
    observations = np.zeros((len(indices), padded_length, sequences[0].shape[1]), dtype=dtype)
    lengths = np.zeros(len(indices), dtype=np.int32)
    for slot, index in enumerate(indices):
        if index >= 0:
            sequence = sequences[index]
            observations[slot, : len(sequence)] = sequence
            lengths[slot] = len(sequence)
    return observations, lengths
