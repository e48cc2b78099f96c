"""RIFF WAV and FLAC files, by libsndfile.

libsndfile reads a file that was cut off as far as it goes and says nothing, so what a header announces is compared with
what is there.
"""

import io
import struct
from typing import Any

import numpy as np
from jaxtyping import Shaped

from fivo.data.budget import SAMPLE_BYTES, WAV_CHUNKS, Budget
from fivo.data.foreign import reason
from fivo.errors import InputError
from fivo.extras import require

WAV_MAGIC, FLAC_MAGIC = b"RIFF", b"fLaC"
FULL_SCALE = 32768.0
"""Of 16 bits: the unit of every recording."""

_BYTES = {"PCM_U8": 1, "PCM_S8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4, "FLOAT": 4, "DOUBLE": 8}
"""What a sample takes in a WAV file, by the names that libsndfile has for its codings."""
_UNKNOWN = 1 << 40
"""More samples than a header can announce: what libsndfile says when it announces none."""


def read_wav(content: bytes, where: str, budget: Budget) -> tuple[Shaped[np.ndarray, " _samples"], int]:
    """(samples, rate) of a mono file; 16-bit samples are int16, all others float32 in the same unit."""
    announced = _announced_bytes(content, where)
    samples, rate, coding = _read(content, "WAV file", where, budget)
    if len(samples) * _BYTES[coding] != announced:
        raise InputError(f"{where} ends within a sample; it is cut short or damaged, so get a fresh copy.")
    return samples, rate


def read_flac(content: bytes, where: str, budget: Budget) -> tuple[Shaped[np.ndarray, " _samples"], int]:
    """(samples, rate) of a mono file; 16-bit samples are int16, all others float32 in the same unit."""
    samples, rate, _ = _read(content, "FLAC file", where, budget)
    return samples, rate


def _read(content: bytes, what: str, where: str, budget: Budget) -> tuple[np.ndarray, int, str]:
    """Samples, rate, and the name of their coding."""
    soundfile = require("soundfile", "Reading recordings")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            _check(file, where)
            expected, rate, coding = file.frames, file.samplerate, file.subtype
            budget.spend(expected * SAMPLE_BYTES)
            samples = file.read(dtype="int16" if coding == "PCM_16" else "float32")  # a float32 holds 24 bits
    except soundfile.SoundFileError as error:
        words = reason(getattr(error, "error_string", error)).replace(". ", ": ")
        raise InputError(f"{where} is not a readable {what} ({words}); get a fresh copy.") from error
    if len(samples) != expected:
        raise InputError(f"{where} holds {len(samples)} samples where {expected} were announced; get a fresh copy.")
    if coding != "PCM_16":
        with np.errstate(all="ignore"):  # what overflows becomes infinite, which is refused
            samples *= np.float32(FULL_SCALE)
    return samples, rate, coding


def _check(file: Any, where: str) -> None:
    if file.subtype not in _BYTES:
        raise InputError(
            f"{where} has samples coded as {file.subtype}, but PCM or floats are needed; convert it to a 16-bit WAV "
            "file."
        )
    if file.channels != 1:
        raise InputError(f"{where} has {file.channels} channels, but one is needed; mix it down or keep one of them.")
    if file.frames >= _UNKNOWN:
        raise InputError(f"{where} does not say how many samples it has; encode it again.")


def _announced_bytes(content: bytes, where: str) -> int:
    """How many bytes of samples a WAV file announces, all of which must be present."""
    if content[8:12] != b"WAVE":
        raise InputError(f"{where} is a RIFF file but not a WAVE; convert it to a 16-bit WAV file.")
    at = 12
    for _ in range(WAV_CHUNKS):
        if at + 8 > len(content):
            raise InputError(
                f"{where} is a WAV file without its samples; it is cut short or damaged, so get a fresh copy."
            )
        name, size = struct.unpack_from("<4sI", content, at)
        at += 8
        if name == b"data":
            if len(content) - at < size:
                raise InputError(
                    f"{where} holds {len(content) - at} bytes of samples where its header announces {size}; "
                    "it is cut short or damaged, so get a fresh copy."
                )
            return size
        at += size + size % 2
    raise InputError(f"{where} has more than {WAV_CHUNKS:,} parts; it is damaged, so get a fresh copy.")
