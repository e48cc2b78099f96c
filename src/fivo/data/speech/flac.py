"""FLAC files, by way of the extra `app`."""

import io

import numpy as np
from jaxtyping import Shaped

from fivo.data.budget import SAMPLE_BYTES, Budget
from fivo.data.foreign import refusing
from fivo.data.speech.riff import FULL_SCALE
from fivo.errors import InputError
from fivo.extras import require

MAGIC = b"fLaC"

_UNKNOWN = 1 << 40
"""More samples than a header can announce: what libsndfile says when it announces none."""


def read_flac(content: bytes, where: str, budget: Budget) -> tuple[Shaped[np.ndarray, " _samples"], int]:
    """(samples, rate) of a mono file; 16-bit samples are int16, all others float32 in the same unit."""
    soundfile = require("soundfile", "Reading recordings")
    with refusing(where, "FLAC file", "get a fresh copy"), soundfile.SoundFile(io.BytesIO(content)) as file:
        if file.channels != 1:
            raise InputError(
                f"{where} has {file.channels} channels, but one is needed; mix it down or keep one of them."
            )
        expected, rate = file.frames, file.samplerate
        if expected >= _UNKNOWN:
            raise InputError(f"{where} does not say how many samples it has; encode it again.")
        budget.spend(expected * SAMPLE_BYTES)
        if file.subtype == "PCM_16":
            samples = file.read(dtype="int16")
        else:
            samples = file.read(dtype="float32")  # holds 24 bits
            samples *= np.float32(FULL_SCALE)
    if len(samples) != expected:
        raise InputError(f"{where} holds {len(samples)} samples where {expected} were announced; get a fresh copy.")
    return samples, rate
