"""What every reader returns: sequences of frames in three splits."""

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
from jaxtyping import Float32, Float64, Shaped

from fivo.data.frames import DTYPES, Frames, Kind, checked_frames, checked_kind, checked_positive
from fivo.errors import InputError

SPLITS = ("train", "valid", "test")
LOWEST_NOTE = 21
HIGHEST_NOTE = 108
NOTES = HIGHEST_NOTE - LOWEST_NOTE + 1
QUARTERS_PER_SECOND = 2.0


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a waveform was standardised: (sample - mean) / deviation, in the unit of 16-bit samples."""

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.deviation < math.inf):
            raise InputError(
                f"the mean of a scaling must be finite and its deviation positive, got {self.mean!r:.40} and "
                f"{self.deviation!r:.40}."
            )

    def standardise(self, samples: Shaped[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
        """In single precision, like the paper's frames."""
        values = samples.astype(np.float32)
        values -= np.float32(self.mean)
        values /= np.float32(self.deviation)
        return values

    def restore(self, values: Shaped[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
        """The samples of standardised values."""
        return values.astype(np.float32) * np.float32(self.deviation) + np.float32(self.mean)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Sequences of frames, split into train, valid and test.

    A sequence of a `pianoroll` is uint8 `[T, 88]` of zeros and ones, column `j` being MIDI note `21 + j`; of a
    `waveform`, float32 `[T, D]`. Arrays are read-only. `step_seconds` is how long one frame sounds, and
    `steps_per_quarter` how many make a quarter note (`None` without a beat). `scaling` says how a waveform was
    standardised (`None` if it was not).
    """

    name: str
    kind: Kind
    splits: Mapping[str, tuple[Frames, ...]]
    step_seconds: float | int
    steps_per_quarter: float | int | None = None
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        checked_kind(self.kind, self.name)
        checked_positive(self.step_seconds, f"{self.name}: `step_seconds`")
        if self.steps_per_quarter is not None:
            checked_positive(self.steps_per_quarter, f"{self.name}: `steps_per_quarter`")
        if set(self.splits) != set(SPLITS):
            raise InputError(
                f"{self.name}: found the splits {sorted(map(str, self.splits))}, but train, valid and test are needed."
            )
        dimension: int | None = NOTES if self.kind == "pianoroll" else None
        checked: dict[str, tuple[Frames, ...]] = {}
        for split in SPLITS:
            if not len(self.splits[split]):
                raise InputError(f"{self.name}: the {split} split is empty; give it at least one sequence.")
            frames = []
            for index, sequence in enumerate(self.splits[split]):
                frames.append(checked_frames(sequence, self.kind, dimension, f"{self.name}: {split} sequence {index}"))
                dimension = frames[-1].shape[1]
            checked[split] = tuple(frames)
        object.__setattr__(self, "splits", MappingProxyType(checked))

    def __repr__(self) -> str:
        lines = [
            f"Dataset({self.name!r:.60}, {self.kind}, frames of {self.dimension}, {self.step_seconds:g} s a frame,"
        ]
        for split, (sequences, frames) in self.counts.items():
            lines.append(
                f"  {split}: {sequences:,} {'sequence' if sequences == 1 else 'sequences'}, {frames:,} frames,"
            )
        return "\n".join(lines).removesuffix(",") + ")"

    @classmethod
    def pianoroll(
        cls,
        name: str,
        splits: Mapping[str, Sequence[Frames]],
        steps_per_quarter: float | int,
        step_seconds: float | int | None = None,
    ) -> "Dataset":
        """A pianoroll with `steps_per_quarter` frames to the quarter note, by default at 120 quarters a minute."""
        checked_positive(steps_per_quarter, f"{name}: `steps_per_quarter`")
        seconds = step_seconds if step_seconds is not None else 1 / (QUARTERS_PER_SECOND * steps_per_quarter)
        return cls(name, "pianoroll", {key: tuple(value) for key, value in splits.items()}, seconds, steps_per_quarter)

    @property
    def dimension(self) -> int:
        """D, the number of entries of a frame."""
        return self.splits["train"][0].shape[1]

    def lengths(self, split: str) -> np.ndarray:
        """T of every sequence of a split."""
        if split not in self.splits:
            raise InputError(f"{self.name} has no split {split!r}; use one of {', '.join(SPLITS)}.")
        return np.array([len(sequence) for sequence in self.splits[split]], dtype=np.int64)

    @property
    def sample_rate(self) -> int:
        """Samples a second of a waveform."""
        return round(self.dimension / self.step_seconds)

    def raw_data_offsets(self, split: str) -> Float64[np.ndarray, " sequences"]:
        """What to add to each sequence's log-density of standardised data to have that of the raw data.

        The change of variables costs log σ for every scored entry, the zeros that fill up the last frame included.
        """
        deviation = 1.0 if self.scaling is None else self.scaling.deviation
        return -math.log(deviation) * self.dimension * self.lengths(split).astype(np.float64)

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """(sequences, frames) of every split."""
        return {split: (len(self.splits[split]), int(self.lengths(split).sum())) for split in SPLITS}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content; equal for equal content, whatever file it was read from."""
        digest = hashlib.sha256(self.fingerprint_start(self.kind, self.dimension))
        for split in SPLITS:
            digest.update(self.fingerprint_part(split, self.lengths(split).tolist()))
            for sequence in self.splits[split]:
                digest.update(np.ascontiguousarray(sequence, DTYPES[self.kind].newbyteorder("<")).reshape(-1).data)
        return digest.hexdigest()

    @staticmethod
    def fingerprint_start(kind: Kind, dimension: int) -> bytes:
        """What the fingerprint covers first; each split's `fingerprint_part` and little-endian frames follow."""
        return f"fivo-dataset {kind} {dimension}\n".encode()

    @staticmethod
    def fingerprint_part(split: str, lengths: Sequence[int]) -> bytes:
        """What the fingerprint covers before the frames of a split."""
        return f"{split} {' '.join(map(str, lengths))}\n".encode()

    @cached_property
    def train_mean(self) -> Float64[np.ndarray, " dimension"]:
        """Mean over all frames of the training split."""
        total = sum(sequence.sum(axis=0, dtype=np.float64) for sequence in self.splits["train"])
        return np.asarray(total / self.lengths("train").sum())
