"""Whole files or none: everything the package writes goes through here. Arrays are in `files.tensors`."""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from fivo.errors import InputError

__all__ = [
    "DamagedError",
    "lock",
    "make_folder",
    "remove",
    "remove_parts",
    "replacing",
    "sync_folder",
    "write_atomically",
]

UNSYNCABLE = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""What some network file systems answer when asked to sync a folder; they keep its entries by themselves."""


class DamagedError(InputError):
    """A file does not hold what was written to it, and may be made again or replaced by a copy."""


@contextmanager
def replacing(path: str | os.PathLike, *, keep: Path | None = None) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` once the block ends without an exception.

    A kill at any instant leaves either the old file or the new one, never a part; so does a power cut, as the file and
    its folder's entry are on disk before this returns. With `keep`, in the same folder, the old file stays under that
    name: a kill between the two renames leaves the old file there, and none at `path`.
    """
    target = Path(path)
    # Not `tempfile`: its files are private to the owner (mode 0600), and the replaced file would stay so.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
    try:
        try:
            make_folder(target.parent)
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if keep is not None and target.exists():
                os.replace(target, keep)
            os.replace(temporary, target)
            sync_folder(target.parent)
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


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; what was made is on disk before this returns."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Bring a folder's entries to disk: without this, a power cut may undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCABLE:
            raise
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file durably, if it exists."""
    if path.exists():
        path.unlink()
        sync_folder(path.parent)


def remove_parts(directory: Path) -> None:
    """Remove temporary files left by a killed process. Call only while holding the lock."""
    for part in directory.glob(".*.part"):
        part.unlink(missing_ok=True)


def lock(path: Path, taken: str) -> TextIO:
    """A lock file, held until it is closed or the process ends; `taken` says who else may have it."""
    try:
        make_folder(path.parent)
        file = open(path, "a")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise InputError(f"{str(path.parent)!r} cannot be written ({error.strerror}); choose another --out.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"{taken}; wait for it or choose another --out.") from None
    return file
