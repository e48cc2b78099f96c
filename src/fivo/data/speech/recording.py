"""One recording, whatever its format."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from fivo.data.budget import Budget
from fivo.data.compression import read_raw
from fivo.data.speech import nist
from fivo.data.speech.rates import convert_rate
from fivo.data.speech.soundfiles import FLAC_MAGIC, WAV_MAGIC, read_flac, read_wav
from fivo.errors import InputError

SUFFIXES = (".wav", ".flac", ".sph", ".nist")
PAPER_RATE = 16_000
"""Samples per second of TIMIT."""
LOUDEST = 2.0**31
"""65,536 times what 16 bits hold; beyond it a file is damaged, and sums of samples would overflow."""


class Recording(NamedTuple):
    """Mono samples, int16 or float32 in the unit of 16-bit samples, and how many there are in a second."""

    samples: Shaped[np.ndarray, " _samples"]
    rate: int


def read_recording(path: str | Path) -> Recording:
    """Read a WAV, NIST SPHERE or FLAC file. The content says which, not the name: TIMIT's NIST files are called .WAV.

    Args:
        path: The file.

    Returns:
        The recording.
    """
    return decode(read_raw(Path(path), Budget(path)), str(path))


def decode(content: bytes, where: str) -> Recording:
    """A recording from the bytes of its file."""
    readers = {WAV_MAGIC: read_wav, nist.MAGIC: nist.read_nist, FLAC_MAGIC: read_flac}
    reader = next((reader for magic, reader in readers.items() if content.startswith(magic)), None)
    if content.startswith(nist.SHORTEN_MAGIC):
        nist.refuse_shorten(where)
    if reader is None:
        raise InputError(
            f"{where} starts like neither a WAV, a NIST SPHERE nor a FLAC file; convert it to a 16-bit WAV file."
        )
    budget = Budget(where)
    budget.spend(len(content))
    samples, rate = reader(content, where, budget)
    if not len(samples):
        raise InputError(f"{where} is empty: it has no sample; remove it.")
    if rate < 1:
        raise InputError(f"{where} has a rate of {rate} Hz; it is damaged, so get a fresh copy.")
    if samples.dtype.kind == "f" and not (samples.min() > -LOUDEST and samples.max() < LOUDEST):
        raise InputError(f"{where} has samples that are not finite, or far beyond full scale; repair or remove it.")
    return Recording(samples, rate)


def read_at_rate(path: str | Path, rate: int, *, resample: bool) -> Recording:
    """Read a recording that must have a given rate.

    Args:
        path: The file.
        rate: Samples per second.
        resample: Whether one with another rate is converted; refused otherwise.

    Returns:
        The recording.
    """
    return at_rate(read_recording(path), rate, resample, str(path))


def at_rate(recording: Recording, rate: int, resample: bool, where: str) -> Recording:
    """A recording of the given rate."""
    if recording.rate == rate:
        return recording
    if not resample:
        raise InputError(
            f"{where} must have {rate} samples a second, got {recording.rate}; resample it, say with "
            f"`sox IN -r {rate} OUT`, or pass --resample to have it done in memory (or --rate {recording.rate} to "
            "model recordings of this rate)."
        )
    return Recording(convert_rate(recording.samples, recording.rate, rate, Budget(where)), rate)
