"""FLAC files, by way of the extra `speech`."""

import io

import numpy as np
from jaxtyping import Shaped

from fivo.data.speech.riff import FULL_SCALE
from fivo.errors import InputError

MAGIC = b"fLaC"


def read_flac(content: bytes, where: str) -> tuple[Shaped[np.ndarray, " _samples"], int]:
    """(samples, rate) of a mono file; 16-bit samples are int16, all others float32 in the same unit."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: the package is there, but not the library that it calls
        raise InputError(
            f"{where} is a FLAC file, which needs an extra package; install it with: pip install 'fivo[speech]'."
        ) from None
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if file.channels != 1:
                raise InputError(
                    f"{where} has {file.channels} channels, but one is needed; mix it down or keep one of them."
                )
            expected = file.frames
            if file.subtype == "PCM_16":
                samples = file.read(dtype="int16")
            else:
                samples = (file.read(dtype="float64") * FULL_SCALE).astype(np.float32)
            rate = file.samplerate
    except soundfile.SoundFileError as error:
        raise InputError(f"{where} is not a readable FLAC file ({error}); get a fresh copy.") from error
    if len(samples) != expected:
        raise InputError(f"{where} holds {len(samples)} samples where {expected} were announced; get a fresh copy.")
    return samples, rate
