"""The .npy form of an array, of which plain numbers and short texts are read, and nothing that has to be evaluated."""

import io
import math
import re
from typing import Literal, NamedTuple

import numpy as np

from fivo.data.budget import NPY_HEADER_BYTES

_MAGIC = b"\x93NUMPY"
_SIZE_BYTES = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}
_HEADER = re.compile(
    r"\{\s*'descr':\s*'(?P<dtype>[<>|=]?(?:b1|[iu][1248]|f[248]|U\d{1,3}))',\s*"
    r"'fortran_order':\s*(?P<order>True|False),\s*"
    r"'shape':\s*\((?P<shape>|\d{1,12},|\d{1,12}(?:,\s*\d{1,12}){1,2},?)\),?\s*\}\s*"
)
_CHUNK = 1 << 20


class Header(NamedTuple):
    """What an array is, as its file says."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype

    @property
    def num_bytes(self) -> int:
        """Of the numbers that follow."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: io.BufferedIOBase) -> Header:
    """The header of an array; the file is left where its numbers begin. Raises `ValueError` for anything else."""
    magic = file.read(len(_MAGIC) + 2)
    size_bytes = _SIZE_BYTES.get(magic[len(_MAGIC) :])
    if not magic.startswith(_MAGIC) or size_bytes is None:
        raise ValueError("an array does not start like one")
    size = int.from_bytes(file.read(size_bytes), "little")
    if size > NPY_HEADER_BYTES:
        raise ValueError(f"an array has a header of {size:,} bytes")
    # numpy evaluates this text as Python; a pattern is enough for what we need.
    match = _HEADER.fullmatch(file.read(size).decode("latin1"))
    if match is None:
        raise ValueError("an array does not hold plain numbers of at most three dimensions")
    shape = tuple(int(extent) for extent in match["shape"].replace(",", " ").split())
    return Header(shape, "F" if match["order"] == "True" else "C", np.dtype(match["dtype"]))


def read_array(file: io.BufferedIOBase, num_bytes: int) -> np.ndarray:
    """An array whose header and numbers take `num_bytes`, read-only. Raises `ValueError` for anything else."""
    header = read_header(file)
    if file.tell() + header.num_bytes != num_bytes:
        raise ValueError(f"an array of {header.dtype} does not hold plain numbers of its shape")
    content = np.empty(header.num_bytes, np.uint8)
    filled = 0
    while filled < len(content):
        piece = file.read(min(_CHUNK, len(content) - filled))
        if not piece:
            raise ValueError("an array is cut short")
        content[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
        filled += len(piece)
    content.setflags(write=False)
    return content.view(header.dtype).reshape(header.shape, order=header.order)
