"""A strict reader of the MATLAB v5 files of the music sets.

It reads variables `traindata`, `validdata` and `testdata`, each a cell array of numeric matrices `[T, 88]`, and refuses
everything else a .mat file may hold.
"""

import dataclasses
import math
import struct
import zlib

import numpy as np

from fivo.data.budget import Budget
from fivo.data.dataset import Dataset
from fivo.data.frames import Frames
from fivo.errors import InputError

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED = 14, 15
_CELL_CLASS = 1
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX_FLAG = 0x08
_NUMBERS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
_VARIABLES = {"traindata": "train", "validdata": "valid", "testdata": "test"}


class _Damaged(Exception):
    pass


def is_matlab(content: bytes) -> bool:
    """Whether a file starts like a little-endian MATLAB v5 file."""
    return content[:10] == b"MATLAB 5.0" and content[124:128] == b"\x00\x01IM"


def from_matlab(content: bytes, name: str, steps_per_quarter: float | int, budget: Budget) -> Dataset:
    """Reads a whole .mat file."""
    path = budget.where
    if not is_matlab(content):
        raise InputError(f"{path} is not a little-endian MATLAB v5 file; save it with `save -v7` or `-v6`.")
    try:
        splits = _variables(content, budget)
    except _Damaged as damage:
        raise InputError(f"{path} cannot be read: {damage}; get a fresh copy.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} cannot be read: a variable's name is not ASCII; get a fresh copy.") from None
    missing = [variable for variable, split in _VARIABLES.items() if split not in splits]
    if missing:
        raise InputError(f"{path} has no variable {missing[0]}, but {', '.join(_VARIABLES)} are needed.")
    return Dataset.pianoroll(name, splits, steps_per_quarter)


@dataclasses.dataclass
class _Cursor:
    """Walks over the tagged elements of a stretch of bytes."""

    data: memoryview
    at: int = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def element(self) -> tuple[int, memoryview]:
        kind, size = struct.unpack("<II", self._take(8))
        if kind >> 16:  # small element: two 16-bit fields, then up to four bytes of data in the tag itself
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise _Damaged("a small element is too large")
            return kind, self.data[self.at - 4 : self.at - 4 + size]
        body = self._take(size)
        if kind != _COMPRESSED:
            self.at = min(self.at + -size % 8, len(self.data))
        return kind, body

    def element_of(self, expected: int) -> memoryview:
        kind, body = self.element()
        if kind != expected:
            raise _Damaged(f"found an element of type {kind} where type {expected} belongs")
        return body

    def _take(self, count: int) -> memoryview:
        if self.at + count > len(self.data):
            raise _Damaged("it is cut short")
        self.at += count
        return self.data[self.at - count : self.at]


def _variables(content: bytes, budget: Budget) -> dict[str, list[Frames]]:
    splits: dict[str, list[Frames]] = {}
    cursor = _Cursor(memoryview(content)[_HEADER_BYTES:])
    while cursor:
        kind, body = cursor.element()
        if kind == _COMPRESSED:
            kind, body = _Cursor(memoryview(_inflate(body, budget))).element()
        if kind != _MATRIX:
            raise _Damaged(f"found an element of type {kind} where a variable belongs")
        matrix = _Cursor(body)
        array_class, shape, variable = _describe(matrix)
        if variable not in _VARIABLES or _VARIABLES[variable] in splits:
            raise _Damaged(f"it has an unexpected or repeated variable {variable[:40]!r}")
        if array_class != _CELL_CLASS:
            raise _Damaged(f"variable {variable} is not a cell array")
        count = _count(shape, matrix)
        budget.spend_sequences(count)
        cells = [_numbers(_Cursor(matrix.element_of(_MATRIX)), f"{variable} cell {i}") for i in range(count)]
        budget.spend(sum(cell.size for cell in cells))  # as bytes in the order of time, which they are copied to
        splits[_VARIABLES[variable]] = cells
    return splits


def _inflate(body: memoryview, budget: Budget) -> bytes:
    inflater = zlib.decompressobj()
    most = budget.room // 2  # the output is gathered in blocks and then joined
    try:
        inner = inflater.decompress(body, most + 1)
    except zlib.error as error:
        raise _Damaged(f"a compressed variable is broken ({error})") from None
    if len(inner) > most:
        raise _Damaged(f"a variable decompresses to more than {most:,} bytes, refused as a decompression bomb")
    if not inflater.eof:
        raise _Damaged("a compressed variable is cut short")
    budget.spend(len(inner))
    return inner


def _count(shape: tuple[int, ...], matrix: _Cursor) -> int:
    count = math.prod(shape)
    if count * 8 > len(matrix.data):  # every cell has at least a tag
        raise _Damaged("a cell array claims more cells than the file holds")
    return count


def _describe(matrix: _Cursor) -> tuple[int, tuple[int, ...], str]:
    """Array class, shape and name: the three elements at the start of every matrix."""
    flags = matrix.element_of(6)
    if len(flags) != 8 or flags[1] & _COMPLEX_FLAG:
        raise _Damaged("a matrix has complex numbers or broken flags")
    extents = matrix.element_of(5)
    dimensions = struct.unpack("<2i", extents) if len(extents) == 8 else ()
    if not dimensions or min(dimensions) < 0:
        raise _Damaged("a matrix does not have two dimensions")
    name = bytes(matrix.element_of(1)).decode("ascii")
    return flags[0], dimensions, name


def _numbers(matrix: _Cursor, where: str) -> Frames:
    array_class, (rows, columns), _ = _describe(matrix)
    if array_class not in _NUMERIC_CLASSES:
        raise _Damaged(f"{where} is not a matrix of numbers")
    kind, body = matrix.element()
    if kind not in _NUMBERS:
        raise _Damaged(f"{where} has numbers of unknown type {kind}")
    dtype = np.dtype(_NUMBERS[kind])
    if len(body) != rows * columns * dtype.itemsize:
        raise _Damaged(f"{where} holds {len(body)} bytes, which do not make {rows} x {columns} numbers")
    return np.frombuffer(body, dtype).reshape(columns, rows).T
