"""Where files are kept and looked for."""

import os
from pathlib import Path


def search_path(data_dir: str | Path | None = None) -> list[Path]:
    """Where a named set is looked for: `data_dir`, `$FIVO_DATA`, the user's cache."""
    places = [data_dir, os.environ.get("FIVO_DATA"), cache_dir()]
    return [Path(os.path.expanduser(place)) for place in places if place]


def cache_dir() -> Path:
    """`fivo` in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fivo"
