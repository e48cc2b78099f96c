"""metrics.jsonl: one flat JSON object per line, each with a checksum, so that a bad line costs no other."""

import os
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fivo.errors import InputError
from fivo.files import sync_folder, write_atomically

Row = dict[str, Any]
"""The `step`, and numbers by their names; None for what was not finite."""
CHECK = re.compile(rb', "check": "([0-9a-f]{8})"}')
TAIL_BYTES = 4096
_numbers = msgspec.json.Decoder(dict[str, int | float | None])


class Lines(NamedTuple):
    """What a file holds: `good` lines as they are, their `rows`, and the number of `damaged` ones."""

    good: list[bytes]
    rows: list[Row]
    damaged: int

    def lost(self, step: int) -> str | None:
        """What the file lacks of a run that has logged a step, as the end of a sentence; None if it is whole.

        A line is on disk before the checkpoint that has seen it, so that a file which ends before it was cut off.
        """
        if self.damaged:
            return f"has {self.damaged} damaged {'line' if self.damaged == 1 else 'lines'}"
        last = max((row["step"] for row in self.rows), default=0)
        return f"ends at step {last} of {step}" if last < step else None


def encode_line(row: dict[str, Any]) -> bytes:
    """{..., "check": "CRC-32 of the line up to its comma, in hexadecimal"}, and a newline."""
    pairs = (b": ".join(map(msgspec.json.encode, pair)) for pair in row.items())
    content = b"{" + b", ".join(pairs)
    return content + b', "check": "%08x"}\n' % zlib.crc32(content)


def decode_line(line: bytes) -> Row | None:
    """The row of a line without its newline; None if it is damaged."""
    content, check = line[:-22], CHECK.fullmatch(line[-22:])
    if check is None or zlib.crc32(content) != int(check[1], 16):
        return None
    try:
        row = _numbers.decode(content + b"}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return row if isinstance(row.get("step"), int) else None


def read_lines(path: Path) -> Lines:
    """All complete lines; a last line cut off by a kill is left out, and is not damage."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Lines([], [], 0)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}); remove it.") from None
    *lines, rest = content.split(b"\n")
    # A flat object has one brace, at its end: what was cut off has none, what has one was whole when it was written.
    lines += [rest] if b"}" in rest else []
    found = [(line + b"\n", decode_line(line)) for line in lines]
    good = [(line, row) for line, row in found if row is not None]
    return Lines([line for line, _ in good], [row for _, row in good], len(found) - len(good))


def last_row(path: Path) -> Row | None:
    """Read the last whole line of metrics, without reading the others.

    Args:
        path: `metrics.jsonl`.

    Returns:
        The line; None if there is none.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return None
    return next((row for line in reversed(lines) if (row := decode_line(line)) is not None), None)


def append_line(path: Path, row: dict[str, Any]) -> None:
    """Add a line, on disk before this returns."""
    new = not path.exists()
    try:
        with open(path, "ab") as file:
            file.write(encode_line(row))
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror}); free some space and run the same command again."
        ) from error


def keep_until(path: Path, step: int) -> str | None:
    """Keep the good lines up to a step, which a checkpoint is of; returns what to say if others are lost.

    Of a file with damaged lines a copy is kept as it was.
    """
    known = read_lines(path)
    kept = b"".join(line for line, row in zip(known.good, known.rows, strict=True) if row["step"] <= step)
    before = path.read_bytes() if path.exists() else b""
    lost = known.lost(step)
    if known.damaged:
        aside = _set_aside(path, before)
        lost = f"{lost}; the others are kept, and the file as it was is {aside.name!r} beside it"
    if kept != before:
        write_atomically(path, kept)
    return None if lost is None else f"{str(path)!r} {lost}."


def _set_aside(path: Path, content: bytes) -> Path:
    """Copy damaged content to a name that holds nothing else."""
    number = 1
    while True:
        aside = path.with_name(f"{path.stem}.damaged{f'-{number}' if number > 1 else ''}{path.suffix}")
        if not aside.exists():
            write_atomically(aside, content)
            return aside
        if aside.read_bytes() == content:
            return aside  # a kill came between this and the repair
        number += 1
