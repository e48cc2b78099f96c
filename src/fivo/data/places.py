"""Where files are kept and looked for."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def search_path(data_dir: str | Path | None = None) -> list[Path]:
    """Where a named dataset is looked for: `data_dir`, `$FIVO_DATA`, the user's cache.

    Args:
        data_dir: A folder to look into first.

    Returns:
        The folders, in order.
    """
    places = [data_dir, os.environ.get("FIVO_DATA"), cache_dir()]
    return [expanded(place) for place in places if place]


def expanded(path: str | Path) -> Path:
    """A path whose `~` or `~name` at the start is a home folder; one that no file can have stays as it is."""
    try:
        return Path(os.path.expanduser(path))
    except ValueError:  # a character that no user's name can have
        return Path(path)


def cache_dir() -> Path:
    """`fivo` in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fivo"


def files_below(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """All files with one of the suffixes, in any case, sorted by their path within the folder.

    A link to a file counts as one, wherever it leads; links to folders below this one are not followed.
    """
    return sorted(walk_files(folder, suffixes), key=lambda path: path.relative_to(folder).as_posix())


def walk_files(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """The same in any order, one by one; not by recursion, as folders may be nested deeply."""
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name.lower().endswith(tuple(suffixes)) and not entry.is_dir():
                        yield Path(entry.path)
        except OSError:  # a folder that may not be read, or is gone
            continue
