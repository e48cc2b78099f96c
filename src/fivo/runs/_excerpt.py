"""sample.npz: a piece of the data and a piece drawn from the model, to look at and to hear on a page."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fivo.files import DamagedError, replacing

EXCERPT = "sample.npz"
"""The file of a run that keeps a sample and a piece of data, for reports."""


class Excerpt(NamedTuple):
    """Two pianorolls to look at side by side.

    Args:
        data: Some music of the dataset [time, note].
        sample: Music drawn from the model [time, note].
        steps_per_quarter: How many time steps make a quarter note.
    """

    data: NDArray[np.uint8]
    sample: NDArray[np.uint8]
    steps_per_quarter: int


def write_excerpt(path: str | os.PathLike, excerpt: Excerpt) -> None:
    """Write an excerpt, atomically.

    Args:
        path: The file.
        excerpt: The excerpt.
    """
    with replacing(path) as file:
        np.savez_compressed(file, **excerpt._asdict())


def read_excerpt(path: str | os.PathLike) -> Excerpt:
    """Read an excerpt; a damaged file is refused.

    Args:
        path: The file.

    Returns:
        The excerpt.
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:  # a bad one is closed, too
            data, sample = (np.asarray(file[name], np.uint8) for name in ("data", "sample"))
            return Excerpt(data, sample, int(file["steps_per_quarter"]))
    except Exception as error:  # whatever numpy, zipfile and zlib raise
        problem = " ".join(str(error).split())
        raise DamagedError(
            f"{str(path)!r} is damaged ({problem:.90}); remove it, and `fivo sweep` writes it again."
        ) from None
