"""Waveforms as frames: standardised by the training samples, cut, and filled up with zeros."""

import math

import numpy as np
from jaxtyping import Float, Float32, Shaped

from fivo.data.sound import Scaling
from fivo.errors import InputError

_BLOCK = 1 << 22
"""Samples that are summed in double precision together: a few minutes of speech."""


class SampleMoments:
    """The mean and standard deviation of all samples, gathered a recording at a time."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def add(self, samples: Shaped[np.ndarray, " _samples"]) -> None:
        self.count += len(samples)
        for begin in range(0, len(samples), _BLOCK):
            wide = samples[begin : begin + _BLOCK].astype(np.float64)
            self.total += float(wide.sum())
            self.squares += float(wide @ wide)

    def scaling(self, where: str) -> Scaling:
        """What standardises these samples."""
        mean = self.total / self.count
        variance = self.squares / self.count - mean**2
        if not variance > 1e-12 * max(mean**2, 1e-12):
            raise InputError(f"{where}: all training samples are {mean:g}, silence; give it recordings with a sound.")
        return Scaling(mean, math.sqrt(variance))


def num_frames(num_samples: int, frame: int) -> int:
    """How many frames a recording makes, the partial last one included."""
    return -(-num_samples // frame)


def as_frames(
    samples: Shaped[np.ndarray, " _samples"], frame: int, scaling: Scaling
) -> Float32[np.ndarray, "_time _frame"]:
    """Cut a recording into standardised frames.

    Args:
        samples: 16-bit samples [sample].
        frame: Samples per frame.
        scaling: How to standardise them.

    Returns:
        Frames [time, frame]; the last one is filled up with zeros, which are the training mean.
    """
    standardised = scaling.standardise(samples)
    standardised.resize(num_frames(len(samples), frame) * frame, refcheck=False)  # in place; what is new is zero
    return standardised.reshape(-1, frame)


def as_samples(frames: Float[np.ndarray, "_time _frame"], scaling: Scaling) -> Float32[np.ndarray, " _samples"]:
    """Join standardised frames to a recording.

    Args:
        frames: Frames [time, frame].
        scaling: How they were standardised.

    Returns:
        Samples in the unit of 16-bit samples [sample].
    """
    return scaling.restore(frames.reshape(-1))
