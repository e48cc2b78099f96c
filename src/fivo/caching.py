"""Compiled programs that outlive the process."""

import os
from pathlib import Path


def compilation_cache() -> None:
    """Keep compiled programs on disk, so that the next start of the same run takes seconds; JAX's own setting wins."""
    import jax

    if jax.config.values.get("jax_compilation_cache_dir") is None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "fivo" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
