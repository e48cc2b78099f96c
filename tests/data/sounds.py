"""Recordings in the forms that users bring."""

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def noise(count: int, seed: int = 0, level: float = 500) -> np.ndarray:
    """16-bit samples."""
    return (level * np.random.default_rng(seed).standard_normal(count)).astype(np.int16)


def nist(samples: np.ndarray, rate: int = 16_000, order: str = "01", **changes: str | None) -> bytes:
    """A NIST SPHERE file; `changes` are header lines without their name, None leaves one out."""
    lines = {
        "database_id": "-s5 TIMIT",
        "channel_count": "-i 1",
        "sample_count": f"-i {len(samples)}",
        "sample_rate": f"-i {rate}",
        "sample_n_bytes": "-i 2",
        "sample_byte_format": f"-s2 {order}",
        "sample_sig_bits": "-i 16",
    } | changes
    header = (
        "NIST_1A\n   1024\n" + "".join(f"{name} {value}\n" for name, value in lines.items() if value) + "end_head\n"
    )
    return header.encode().ljust(1024, b" ") + samples.astype("<i2" if order == "01" else ">i2").tobytes()


def riff(
    body: bytes | np.ndarray,
    rate: int = 16_000,
    *,
    bits: int = 16,
    coding: int = 1,
    channels: int = 1,
    more: bytes = b"",
) -> bytes:
    """A RIFF WAV file; `more` are chunks before the samples."""
    raw = body if isinstance(body, bytes) else body.astype("<i2").tobytes()
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", coding, channels, rate, rate * width, width, bits)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + more + b"data" + struct.pack("<I", len(raw)) + raw
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def write(path: Path, content: bytes) -> Path:
    """A file, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def timit_tree(root: Path, train: Iterable[str], test: Iterable[str]) -> Path:
    """Tiny NIST files under the given names `DR1/SPEAKER/SA1.WAV`."""
    for half, names in (("TRAIN", train), ("TEST", test)):
        for number, name in enumerate(names):
            write(root / half / name, nist(noise(3 + number % 5, number)))
    return root
