"""What music and speech have besides frames."""

import dataclasses
import math

import numpy as np
from jaxtyping import Float32, Shaped

from fivo.data.columns import Column
from fivo.data.frames import checked_positive
from fivo.errors import InputError

LOWEST_NOTE = 21
"""The lowest MIDI note of a pianoroll, its first column: A0."""
HIGHEST_NOTE = 108
"""The highest MIDI note of a pianoroll: C8."""
NOTES = HIGHEST_NOTE - LOWEST_NOTE + 1
QUARTERS_PER_SECOND = 2.0


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a waveform was standardised: (sample - mean) / deviation, in the unit of 16-bit samples.

    Args:
        mean: Of the training samples.
        deviation: Of the training samples, positive.
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.deviation < math.inf):
            raise InputError(
                f"the mean of a scaling must be finite and its deviation positive, got {self.mean!r:.40} and "
                f"{self.deviation!r:.40}."
            )

    def standardise(self, samples: Shaped[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
        """Standardise samples, in single precision like the paper's frames.

        Args:
            samples: 16-bit samples of any shape.

        Returns:
            Standardised values of the same shape.
        """
        values = samples.astype(np.float32)
        values -= np.float32(self.mean)
        values /= np.float32(self.deviation)
        return values

    def restore(self, values: Shaped[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
        """Undo `standardise`.

        Args:
            values: Standardised values of any shape.

        Returns:
            Samples of the same shape.
        """
        return values.astype(np.float32) * np.float32(self.deviation) + np.float32(self.mean)


@dataclasses.dataclass(frozen=True)
class Music:
    """A pianoroll: frames of 88 zeros and ones, column `j` being MIDI note `21 + j`.

    Args:
        steps_per_quarter: frames to the quarter note.
        step_seconds: how long a frame sounds; by default at 120 quarters a minute.
    """

    steps_per_quarter: float | int
    step_seconds: float | int | None = None

    def __post_init__(self) -> None:
        checked_positive(self.steps_per_quarter, "`steps_per_quarter`")
        if self.step_seconds is None:
            object.__setattr__(self, "step_seconds", 1 / (QUARTERS_PER_SECOND * self.steps_per_quarter))
        checked_positive(self.step_seconds, "`step_seconds`")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The notes of a piano."""
        return tuple(Column(f"note {note}", "binary") for note in range(LOWEST_NOTE, HIGHEST_NOTE + 1))


@dataclasses.dataclass(frozen=True)
class Speech:
    """A waveform cut into frames.

    Args:
        frame: samples in a frame.
        step_seconds: how long a frame sounds.
        scaling: how the samples were standardised; None if they were not.
    """

    frame: int
    step_seconds: float | int
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        checked_positive(self.frame, "`frame`")
        checked_positive(self.step_seconds, "`step_seconds`")

    @property
    def sample_rate(self) -> int:
        """Samples a second."""
        return round(self.frame / self.step_seconds)

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column, repeated: every entry of a frame is a sample."""
        scaling = self.scaling or Scaling(0.0, 1.0)
        return (Column("sample", "real", scaling.mean, scaling.deviation),) * self.frame
