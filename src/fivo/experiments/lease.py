"""One sweep of a directory at a time; its jobs, wherever they run, check a file to see whether it is still valid."""

import secrets
from pathlib import Path
from typing import Any

from fivo.files import lock, write_atomically


class Lease:
    """Holds a directory for a sweep. A later sweep's token replaces this one's, and this one's jobs stop."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / ".sweep"
        self.token = secrets.token_hex(8)
        self._lock: Any = None

    def __enter__(self) -> "Lease":
        self._lock = lock(self.directory / ".sweep.lock", f"another sweep is at work in {str(self.directory)!r}")
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
