"""A tiny folder of recordings and tiny runs on it."""

from pathlib import Path

import numpy as np

from tests.data.sounds import riff, write

SETTINGS = {
    "hidden": 4,
    "particles": 2,
    "batch_size": 2,
    "learning_rate": 0.01,
    "steps": 30,
    "validate_every": 10,
    "log_every": 10,
}
LENGTHS = {"train": (590, 433, 600, 401), "valid": (599,), "test": (450, 200, 333)}
"""Samples of the recordings: hardly a multiple of the 200 of a frame among them."""


def tiny_speech(folder: Path) -> Path:
    """Tones that swell, around an offset, and a silent recording."""
    rng = np.random.default_rng(0)
    for split, lengths in LENGTHS.items():
        for number, length in enumerate(lengths):
            time = np.arange(length) / 16_000
            sound = 800 * np.sin(2 * np.pi * rng.uniform(200, 400) * time) * time / time[-1] + 40
            silent = split == "train" and number == 3
            write(folder / split / f"{number}.wav", riff(np.zeros(length) if silent else np.rint(sound)))
    return folder
