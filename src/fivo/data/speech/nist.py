"""NIST SPHERE files, as TIMIT is distributed: a header of text, then raw 16-bit samples.

The header starts with `NIST_1A` and its own size, holds lines `name -type value` and ends with `end_head`.
"""

import re
from typing import NoReturn

import numpy as np
from jaxtyping import Int16

from fivo.data.budget import NIST_HEADER_BYTES, SAMPLE_BYTES, Budget
from fivo.errors import InputError

MAGIC = b"NIST_1A\n"
SHORTEN_MAGIC = b"ajkg"

_LINE = re.compile(r"(\S+) -(i|r|s(\d{1,9})) (.*)")
_BYTE_ORDERS = {"01": "<i2", "10": ">i2"}


def read_nist(content: bytes, where: str, budget: Budget) -> tuple[Int16[np.ndarray, " _samples"], int]:
    """(samples, rate) of an uncompressed mono file."""
    start = _header_size(content, where)
    fields = _fields(content[:start], where)
    coding = fields.get("sample_coding", "pcm")
    if "shorten" in coding.lower():
        refuse_shorten(where)
    if coding != "pcm":
        raise InputError(f"{where} is coded as {coding!r:.40}, but only pcm is read; convert it to a 16-bit WAV file.")
    channels, width = _integer(fields, "channel_count", where, default=1), _integer(fields, "sample_n_bytes", where)
    count, rate = _integer(fields, "sample_count", where), _integer(fields, "sample_rate", where)
    if channels != 1:
        raise InputError(f"{where} has {channels} channels, but one is needed; mix it down or keep one of them.")
    order = fields.get("sample_byte_format")
    if width != 2 or order not in _BYTE_ORDERS:
        raise InputError(
            f"{where} has samples of {width} bytes in the order {order!r:.20}, but 2 bytes in the order 01 or 10 are "
            "needed; convert it to a 16-bit WAV file."
        )
    if len(content) - start != 2 * count:
        raise InputError(
            f"{where} holds {len(content) - start} bytes of samples where its header announces {2 * count}; "
            "it is cut short or damaged, so get a fresh copy."
        )
    budget.spend(count * SAMPLE_BYTES)
    return np.frombuffer(content, _BYTE_ORDERS[order], offset=start).astype(np.int16), rate


def refuse_shorten(where: str) -> NoReturn:
    """The sentence for a file that has to be decompressed first."""
    raise InputError(
        f"{where} is compressed with Shorten, which is not read; decompress it first, say with "
        "`sph2pipe -f wav IN OUT` or `w_decode -o pcm IN OUT`."
    )


def _header_size(content: bytes, where: str) -> int:
    size = content[len(MAGIC) : len(MAGIC) + 8]
    if not re.fullmatch(rb" *\d+\n", size) or not 16 <= int(size) <= NIST_HEADER_BYTES:
        raise InputError(f"{where} is a NIST file without the size of its header; it is damaged, so get a fresh copy.")
    if len(content) < int(size):
        raise InputError(f"{where} ends within its header of {int(size)} bytes; it is cut short, so get a fresh copy.")
    return int(size)


def _fields(header: bytes, where: str) -> dict[str, str]:
    lines = header.decode("latin1").split("\n")[2:]
    fields: dict[str, str] = {}
    for line in lines:
        line = line.rstrip()
        if line == "end_head":
            return fields
        match = _LINE.fullmatch(line)
        if match is not None:
            fields[match[1]] = match[4][: int(match[3])] if match[3] else match[4].strip()
        elif line and not line.startswith(";"):
            raise InputError(f"lines in the header of {where} must be `name -type value`, got {line!r:.60}.")
    raise InputError(f"{where} has a header without `end_head`; it is damaged, so get a fresh copy.")


def _integer(fields: dict[str, str], name: str, where: str, default: int | None = None) -> int:
    value = fields.get(name, None if default is None else str(default))
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 12:
        raise InputError(f"{name} in the header of {where} must be an integer, got {value!r:.40}.")
    return int(value)
