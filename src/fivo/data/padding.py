"""Sequences of different lengths in one array."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int32, Shaped
from numpy.typing import DTypeLike

from fivo.data.frames import Frames


def pad(
    sequences: Sequence[Frames], indices: Int[np.ndarray, " batch"], padded_length: int, dtype: DTypeLike = np.float32
) -> tuple[Shaped[np.ndarray, "batch time dimension"], Int32[np.ndarray, " batch"]]:
    """The chosen sequences, filled up with zeros to `padded_length`, and their lengths; index -1 gives length 0."""
    observations = np.zeros((len(indices), padded_length, sequences[0].shape[1]), dtype=dtype)
    lengths = np.zeros(len(indices), dtype=np.int32)
    for slot, index in enumerate(indices):
        if index >= 0:
            sequence = sequences[index]
            observations[slot, : len(sequence)] = sequence
            lengths[slot] = len(sequence)
    return observations, lengths
