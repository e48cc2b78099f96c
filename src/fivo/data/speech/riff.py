"""RIFF WAV files: PCM of 8 to 32 bits or floats, read without any other package."""

import struct
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Shaped

from fivo.data.budget import SAMPLE_BYTES, WAV_CHUNKS, Budget
from fivo.errors import InputError

MAGIC = b"RIFF"
FULL_SCALE = 32768.0
"""Of 16 bits: the unit of every recording."""

_EXTENSIBLE = 0xFFFE


def read_riff(content: bytes, where: str, budget: Budget) -> tuple[Shaped[np.ndarray, " _samples"], int]:
    """(samples, rate) of a mono file; 16-bit samples are int16, all others float32 in the same unit."""
    if content[8:12] != b"WAVE":
        raise InputError(f"{where} is a RIFF file but not a WAVE; convert it to a 16-bit WAV file.")
    form: tuple[int, int, int, int] | None = None
    for name, body, announced in _chunks(content, where):
        if name == b"fmt ":
            form = _form(body, where)
        elif name == b"data":
            if form is None:
                break
            if len(body) < announced:
                raise InputError(
                    f"{where} holds {len(body)} bytes of samples where its header announces {announced}; "
                    "it is cut short or damaged, so get a fresh copy."
                )
            coding, channels, rate, bits = form
            if channels != 1:
                raise InputError(
                    f"{where} has {channels} channels, but one is needed; mix it down or keep one of them."
                )
            budget.spend(len(body) * 8 // max(bits, 1) * SAMPLE_BYTES)
            return _decode(body, coding, bits, where), rate
    raise InputError(f"{where} is a WAV file without its samples; it is cut short or damaged, so get a fresh copy.")


def _chunks(content: bytes, where: str) -> Iterator[tuple[bytes, memoryview, int]]:
    """Name, what is there of the content, and the announced size of every chunk."""
    view = memoryview(content)
    at = 12
    for _ in range(WAV_CHUNKS):
        if at + 8 > len(content):
            return
        name, size = struct.unpack_from("<4sI", content, at)
        yield name, view[at + 8 : at + 8 + size], size
        at += 8 + size + size % 2
    raise InputError(f"{where} has more than {WAV_CHUNKS:,} parts; it is damaged, so get a fresh copy.")


def _form(body: memoryview, where: str) -> tuple[int, int, int, int]:
    """(coding, channels, rate, bits)."""
    if len(body) < 16:
        raise InputError(f"{where} has a format of {len(body)} bytes, but 16 are needed; get a fresh copy.")
    coding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if coding == _EXTENSIBLE and len(body) >= 26:
        coding = struct.unpack_from("<H", body, 24)[0]
    return coding, channels, rate, bits


def _decode(body: memoryview, coding: int, bits: int, where: str) -> Shaped[np.ndarray, " _samples"]:
    if len(body) * 8 % max(bits, 1):
        raise InputError(f"{where} ends within a sample; it is cut short or damaged, so get a fresh copy.")
    match coding, bits:
        case (1, 16):
            return np.frombuffer(body, "<i2").astype(np.int16)
        case (1, 8):
            samples = np.frombuffer(body, np.uint8).astype(np.float32)
            samples -= 128
            return _scaled(samples, 256.0)
        case (1, 24):
            wide = np.zeros((len(body) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
            return _scaled(wide.reshape(-1).view("<i4"), 1 / 65536)
        case (1, 32):
            return _scaled(np.frombuffer(body, "<i4"), 1 / 65536)
        case (3, 32) | (3, 64):
            return _scaled(np.frombuffer(body, f"<f{bits // 8}"), FULL_SCALE)
    raise InputError(
        f"{where} has samples of coding {coding} and {bits} bits, but PCM of 8, 16, 24 or 32 bits or floats are "
        "needed; convert it to a 16-bit WAV file."
    )


def _scaled(samples: Shaped[np.ndarray, " _samples"], factor: float) -> Float32[np.ndarray, " _samples"]:
    """In single precision, times a power of two, which rounds nothing; what overflows becomes infinite."""
    with np.errstate(all="ignore"):
        scaled = samples.astype(np.float32)
        scaled *= np.float32(factor)
    return scaled
