"""Reading whole files, compressed or not, without letting a small file fill the memory."""

import lzma
import zlib
from pathlib import Path

from fivo.errors import InputError

MAX_BYTES = 1 << 30

_XZ_MEMORY = 1 << 28
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_SUFFIXES = {b"\xfd7zXZ\x00": ".xz", b"\x1f\x8b": ".gz"}


def suffix_of(raw: bytes) -> str:
    """`.xz` or `.gz` when the content is compressed so, else nothing."""
    return next((suffix for magic, suffix in _SUFFIXES.items() if raw.startswith(magic)), "")


def read_raw(path: Path) -> bytes:
    """The bytes of a file, at most `MAX_BYTES`."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path} holds {size:,} bytes, more than the {MAX_BYTES:,} that are read; split it up.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}); check the path and its permissions."
        ) from error


def read_bounded(path: Path) -> bytes:
    """The content of a file, decompressed if it is .xz or .gz inside, at most `MAX_BYTES`."""
    return decompress(read_raw(path), str(path), MAX_BYTES)


def decompress(raw: bytes, where: str, limit: int) -> bytes:
    """`raw` itself, or what is inside when it is .xz or .gz."""
    suffix = suffix_of(raw)
    if not suffix:
        return raw
    xz = suffix == ".xz"
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY) if xz else zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = stream.decompress(raw, limit + 1)
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{where} is damaged or asks for too much memory ({error}); get a fresh copy.") from error
    if len(content) > limit:
        raise InputError(f"{where} decompresses to more than {limit:,} bytes; refused as a decompression bomb.")
    if not stream.eof or stream.unused_data:
        raise InputError(f"{where} is cut short or has something after its end; get a fresh copy.")
    return content
