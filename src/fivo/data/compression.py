"""Reading whole files, compressed or not, without waiting for one that never ends or letting one fill the memory."""

import io
import lzma
import os
import stat
import zlib
from pathlib import Path

from fivo.data.budget import Budget
from fivo.errors import InputError

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_SUFFIXES = {b"\xfd7zXZ\x00": ".xz", b"\x1f\x8b": ".gz"}
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def suffix_of(raw: bytes) -> str:
    """`.xz` or `.gz` when the content is compressed so, else nothing."""
    return next((suffix for magic, suffix in _SUFFIXES.items() if raw.startswith(magic)), "")


def open_regular(path: Path) -> io.BufferedReader:
    """A file to read from, if it is a regular one or a link to one.

    Opening a named pipe waits for a writer, and a device may never end; so the kind is looked at before, and once more
    afterwards, lest something else took the file's place.
    """
    try:
        _refuse_irregular(os.stat(path).st_mode, path)
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); check the path and its permissions.") from error
    try:
        _refuse_irregular(os.fstat(file.fileno()).st_mode, path)
    except InputError:
        file.close()
        raise
    return file


def _refuse_irregular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, but a regular file is needed.")


def read_raw(path: Path, budget: Budget, limit: int | None = None) -> bytes:
    """The bytes of a regular file, at most `limit`."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is not None and size > limit:
            raise InputError(f"{path} holds {size:,} bytes, more than the {limit:,} that are read of such a file.")
        budget.spend(size)
        try:
            content = file.read(size + 1)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror or error}); check that disk.") from error
    if len(content) != size:
        raise InputError(f"{path} holds other than the {size:,} bytes that it is said to; copy it elsewhere first.")
    return content


def read_bounded(path: Path, budget: Budget) -> bytes:
    """The content of a regular file, decompressed if it is .xz or .gz inside."""
    return decompress(read_raw(path, budget), str(path), budget)


def decompress(raw: bytes, where: str, budget: Budget, limit: int | None = None) -> bytes:
    """`raw` itself, or what is inside when it is .xz or .gz: at most `limit` bytes, and what the budget allows."""
    suffix = suffix_of(raw)
    if not suffix:
        return raw
    xz = suffix == ".xz"
    for_dictionary = budget.room // 4
    most = (budget.room - for_dictionary) // 2  # the output is gathered in blocks and then joined
    if limit is not None:
        most = min(most, limit)
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=for_dictionary) if xz else zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = stream.decompress(raw, most + 1)
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{where} is damaged or asks for too much memory ({error}); get a fresh copy.") from error
    if len(content) > most:
        raise InputError(f"{where} decompresses to more than {most:,} bytes; refused as a decompression bomb.")
    if not stream.eof or stream.unused_data:
        raise InputError(f"{where} is cut short or has something after its end; get a fresh copy.")
    budget.spend(len(content))
    return content
