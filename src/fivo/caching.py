"""Compiled programs that outlive the process."""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any

__all__ = ["compilation_cache"]

DIGEST_BYTES = 32


def compilation_cache() -> None:
    """Keep compiled programs on disk, so that the next start of the same run takes seconds.

    A damaged entry is compiled again and replaced; a cache that cannot be written is not used. Neither prints anything.
    JAX's own setting of a cache directory wins and leaves everything to JAX.
    """
    import jax

    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    try:
        directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fivo" / "compiled"
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter: this user has no home
        return
    # What JAX cannot read it compiles, and then stores again: nothing that a user could do anything about.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    _verify_entries(directory)


def _verify_entries(directory: Path) -> None:
    """Put a cache with checksums in the place of JAX's, which never replaces an entry, however damaged."""
    try:
        from jax._src import compilation_cache as internal
        from jax._src.compilation_cache_interface import CacheInterface
    except ImportError:  # another version of JAX has other names there; its own cache works too
        return

    class Verified(CacheInterface):
        """Entries with their SHA-256 in front; a damaged one, or one written by JAX alone, counts as missing."""

        _path = directory

        def get(self, key: str) -> Any:
            try:
                content = self._file(key).read_bytes()
            except OSError:
                return None
            digest, value = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
            return value if hashlib.sha256(value).digest() == digest else None

        def put(self, key: str, value: bytes) -> None:
            # Not atomic, and need not be: the checksum tells a whole entry from a part of one, and a process that is
            # killed here leaves no temporary file behind.
            try:
                self._file(key).write_bytes(hashlib.sha256(value).digest() + value)
            except OSError:
                return

        def _file(self, key: str) -> Path:
            return self._path / f"{key}-cache"

    internal.reset_cache()
    internal._cache, internal._cache_initialized = Verified(), True
