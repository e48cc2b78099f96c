"""Whole files or none: everything the package writes goes through here."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fivo.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` once the block ends without an exception.

    A kill at any instant leaves either the old file or the new one, never a part.
    """
    target = Path(path)
    # Not `tempfile`: its files are private to the owner (mode 0600), and the replaced file would stay so.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"{str(target)!r} cannot be written ({error.strerror or error}); free some space or choose a folder "
            "that you may write to."
        ) from error


def write_atomically(path: str | os.PathLike, content: bytes) -> None:
    """Write a whole file or nothing."""
    with replacing(path) as file:
        file.write(content)
