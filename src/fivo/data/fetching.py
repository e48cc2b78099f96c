"""Bringing a known set into the data directory."""

import dataclasses
import hashlib
from pathlib import Path

from fivo.data.budget import Budget
from fivo.data.compression import decompress, read_raw, suffix_of
from fivo.data.download import Interrupted, Progress, download, is_url
from fivo.data.loading import locate, verify_checksum
from fivo.data.matlab import is_matlab
from fivo.data.places import expanded, search_path
from fivo.data.registry import KnownDataset, known
from fivo.errors import InputError
from fivo.files import replacing

# Room for what compression adds to incompressible content; the known files stay far below.
_SLACK_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Fetched:
    """Where a dataset now is.

    Args:
        name: The dataset.
        path: The file.
        source: Where it came from; None when it was there already.
    """

    name: str
    path: Path
    source: str | None


def _silent(done: int, total: int | None) -> None:
    pass


def fetch(
    name: str, source: str | Path | None = None, data_dir: str | Path | None = None, progress: Progress = _silent
) -> Fetched:
    """Bring a known dataset into `data_dir`, else `$FIVO_DATA`, else the user's cache.

    The file appears under its name only after its checksum was verified. An interrupted download continues at the next
    call.

    Args:
        name: The dataset.
        source: An http(s) address or a local file: the pickle (plain, .xz or .gz) or the .mat. By default, where the
            package knows it to be.
        data_dir: Where to put it.
        progress: Called with the bytes so far and in total (None when the server does not say).

    Returns:
        Where it is now.
    """
    entry = known(name)
    if entry.embedded and source is not None:
        raise InputError(f"{name} is shipped with the package; there is nothing to fetch from {source}.")
    present = locate(name, data_dir)
    if present is not None and source is None and (entry.embedded or _is_good(entry, present)):
        return Fetched(name, present, None)
    chosen = str(source or entry.source)
    directory = search_path(data_dir)[0]
    if is_url(chosen):
        stored = _fetch_url(entry, chosen, directory, progress)
    else:
        local = expanded(chosen)
        raw = read_raw(local, Budget(local))
        stored = _store(raw, _verified(entry, raw, chosen), entry, directory)
    found = locate(name, data_dir)
    if found != stored and not _is_good(entry, found):
        raise InputError(
            f"{name} was stored as {stored}, but {found} is found first and is not the known file; move it away."
        )
    return Fetched(name, stored, chosen)


def _fetch_url(entry: KnownDataset, url: str, directory: Path, progress: Progress) -> Path:
    # Named by its source, so that the beginning of one file is never continued with the rest of another.
    partial = directory / f".{entry.name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.part"
    limit = entry.pickle_bytes + _SLACK_BYTES
    try:
        directory.mkdir(parents=True, exist_ok=True)
        resumed = partial.exists()
        download(url, partial, limit, progress)
        try:
            raw, content = _downloaded(entry, partial, url)
        except InputError:
            partial.unlink()
            if not resumed:
                raise
            download(url, partial, limit, progress)  # the earlier part was not of this file: once more from the start
            raw, content = _downloaded(entry, partial, url)
        stored = _store(raw, content, entry, directory)
        partial.unlink()
    except Interrupted as reason:
        raise InputError(
            f"{entry.name} could not be fetched from {url} ({reason}); check the network and run the same command "
            f"again to continue, or get the file elsewhere and run `fivo data fetch {entry.name} --from FILE`."
        ) from reason
    except OSError as error:
        raise InputError(
            f"{entry.name} cannot be stored in {directory} ({error.strerror or error}); free some space or choose a "
            "writable folder with --data-dir."
        ) from error
    return stored


def _downloaded(entry: KnownDataset, partial: Path, url: str) -> tuple[bytes, bytes]:
    raw = read_raw(partial, Budget(url))
    return raw, _verified(entry, raw, url)


def _verified(entry: KnownDataset, raw: bytes, source: str) -> bytes:
    """The decompressed content."""
    content = decompress(raw, source, Budget(source), entry.pickle_bytes + _SLACK_BYTES)
    verify_checksum(entry, content, source)
    return content


def _store(raw: bytes, content: bytes, entry: KnownDataset, directory: Path) -> Path:
    name = entry.matlab_name if is_matlab(content) else entry.pickle_names[-1]
    path = directory / (name + suffix_of(raw))
    with replacing(path) as file:
        file.write(raw)
    return path


def _is_good(entry: KnownDataset, path: Path | None) -> bool:
    if path is None:
        return False
    try:
        _verified(entry, read_raw(path, Budget(path)), str(path))
    except InputError:
        return False
    return True
