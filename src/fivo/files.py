"""Whole files or none: everything the package writes goes through here."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

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


def remove_parts(directory: Path) -> None:
    """Remove what kills have left in a folder of files that were being replaced; only its owner may."""
    for part in directory.glob(".*.part"):
        part.unlink(missing_ok=True)


def lock(path: Path, taken: str) -> TextIO:
    """A lock file, held until it is closed or the process ends; `taken` says who else may have it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise InputError(f"{str(path.parent)!r} cannot be written ({error.strerror}); choose another --out.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"{taken}; wait for it or choose another --out.") from None
    return file
