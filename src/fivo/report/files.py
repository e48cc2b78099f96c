"""Whole files or none: every writer of this package goes through here."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fivo.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` once the block ends without an exception.

    Until then the bytes live in a hidden file of the same folder, so that a reader sees the old file or the new one
    and never half of one.
    """
    target = Path(path)
    # Not `tempfile`: its files are private to the owner (mode 0600), and the replaced file would stay so.
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        try:
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
            f"The file {str(target)!r} cannot be written ({error.strerror or error}); "
            "expected a path inside an existing folder that you may write to, with space left: choose another path."
        ) from error
