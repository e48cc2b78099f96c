"""One sweep of a directory at a time; its jobs, wherever they run, know by a file whether it still stands."""

import fcntl
import secrets
from pathlib import Path
from typing import Any

from fivo.errors import InputError
from fivo.files import write_atomically


class Lease:
    """Holds a directory for a sweep. A later sweep's token replaces this one's, and this one's jobs stop."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / ".sweep"
        self.token = secrets.token_hex(8)
        self._lock: Any = None

    def __enter__(self) -> "Lease":
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.directory / ".sweep.lock", "a")
        except OSError as error:
            raise InputError(
                f"{str(self.directory)!r} cannot be written ({error.strerror}); choose another --out."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InputError(
                f"another sweep is at work in {str(self.directory)!r}; wait for it or choose another --out."
            ) from None
        write_atomically(self.file, self.token.encode())
        return self

    def __exit__(self, *_: object) -> None:
        self.file.unlink(missing_ok=True)
        self._lock.close()


def stands(file: str, token: str) -> bool:
    """Whether the sweep of a token may still have jobs running."""
    try:
        return Path(file).read_text() == token
    except OSError:
        return False
