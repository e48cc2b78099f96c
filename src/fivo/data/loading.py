"""Finding a dataset and choosing its reader."""

import hashlib
import importlib.resources
import os
from pathlib import Path

from fivo.data.budget import Budget
from fivo.data.compression import read_bounded
from fivo.data.dataset import Dataset
from fivo.data.frames import checked_positive
from fivo.data.matlab import from_matlab, is_matlab
from fivo.data.midi import from_midi_folder
from fivo.data.notes import from_pickle
from fivo.data.npz import from_npz
from fivo.data.places import expanded, search_path
from fivo.data.registry import KNOWN, KnownDataset, known
from fivo.data.speech import timit
from fivo.data.speech.cache import Cutting
from fivo.data.speech.folder import from_recordings, is_recordings_folder
from fivo.data.speech.recording import PAPER_RATE
from fivo.data.speech.recording import SUFFIXES as RECORDING_SUFFIXES
from fivo.data.tables.reading import is_table
from fivo.errors import InputError

_FOLDERS = ("", "mat", "pianoroll", "pianoroll/mat", "polyphonic")
_COMPRESSIONS = ("", ".xz", ".gz")
_SUFFIXES = (".xz", ".gz", ".pickle", ".pkl", ".mat", ".npz")
_DEFAULT_STEPS_PER_QUARTER = 2.0
_PICKLE_MAGIC = b"\x80"
_PICKLE_SUFFIXES = (".pickle", ".pkl")
# What people try; whatever else is none of the above is recognised by its content.
_TABLES = (".txt", ".json", ".jsonl", ".xlsx", ".h5", ".hdf5", ".npy")
_SINGLE_PIECES = (".mid", ".midi", *RECORDING_SUFFIXES)


def locate(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The first file of a named set on the search path; a .mat before a pickle: the same content, read faster."""
    entry = known(name)
    if entry.embedded:
        return Path(str(importlib.resources.files("fivo.data") / f"{entry.name}.npz"))
    names = [entry.matlab_name, *(base + suffix for base in entry.pickle_names for suffix in _COMPRESSIONS)]
    for place in search_path(data_dir):
        for file_name in names:
            for folder in _FOLDERS:
                if os.path.isfile(place / folder / file_name):
                    return place / folder / file_name
    return None


def find(name_or_path: str | Path, data_dir: str | Path | None = None) -> Path:
    """Find a dataset; nothing of it is read.

    Args:
        name_or_path: A known name, or a path.
        data_dir: Where to look first.

    Returns:
        Its path.
    """
    if str(name_or_path) == timit.NAME:
        return timit.find_timit(data_dir)
    if not _is_name(name_or_path):
        return expanded(name_or_path)
    entry = known(str(name_or_path))
    path = locate(entry.name, data_dir)
    if path is None:
        places = ", ".join(map(str, search_path(data_dir)))
        raise InputError(
            f"dataset {entry.name!r} is not in {places}; run `fivo data fetch {entry.name}` "
            "or name its folder with --data-dir."
        )
    return path


def _is_name(name_or_path: str | Path) -> bool:
    if not isinstance(name_or_path, str):
        return False
    return name_or_path in KNOWN or not name_or_path or not os.path.exists(expanded(name_or_path))


def load(
    name_or_path: str | Path,
    *,
    data_dir: str | Path | None = None,
    steps_per_quarter: float | int | None = None,
    split_seed: int = 0,
    frame: int = timit.FRAME,
    rate: int = PAPER_RATE,
    resample: bool = False,
) -> Dataset:
    """Read a dataset.

    A path is a pickle of note lists (plain, .xz or .gz), an .npz, the .mat of a known set, or a folder of MIDI files or
    of recordings. A folder in TIMIT's layout is split as in the paper.

    Only regular files are read. A link to one counts as one, wherever it leads; links to folders within a folder are
    followed for `train`, `valid` and `test` only. What a dataset becomes in memory is limited (`fivo.data.budget`).

    Args:
        name_or_path: A known name (see `list_datasets`), or a path.
        data_dir: Where to look first.
        steps_per_quarter: How finely MIDI files are sampled, and how fast a pickle is to be played; by default 2, an
            eighth note per step.
        split_seed: Random seed for the splits of a folder that has no sub-folders for them.
        frame: Samples per frame, for recordings.
        rate: Their sample rate, in Hz.
        resample: Whether recordings with another rate are converted.

    Returns:
        The dataset.
    """
    cutting = checked_cutting(frame, rate, resample)
    if steps_per_quarter is not None:
        checked_positive(steps_per_quarter, "`steps_per_quarter`")
    if not isinstance(split_seed, int) or split_seed < 0:
        raise InputError(f"`split_seed` must be a whole number from 0, got {split_seed!r:.40}.")
    path = find(name_or_path, data_dir)
    if str(name_or_path) == timit.NAME:
        return timit.load_timit(path, frame=frame)
    if _is_name(name_or_path):
        entry = known(str(name_or_path))
        if steps_per_quarter not in (None, entry.steps_per_quarter):
            raise InputError(
                f"{entry.name} has {entry.steps_per_quarter:g} steps to the quarter, but {steps_per_quarter} were "
                "asked for."
            )
        return _load_known(entry, path)
    if os.path.isdir(path):
        return _load_folder(path, steps_per_quarter, split_seed, cutting)
    if os.path.isfile(path) and is_table(path):
        raise InputError(
            f"{path} is a table, of which must be said what its columns are; read it with `Dataset.from_table`, and "
            "see what is in it with `fivo data check`."
        )
    if os.path.isfile(path) and _base(path).lower().endswith((*_TABLES, *_SINGLE_PIECES)):
        raise _other(path)
    budget = Budget(path)
    return _read(read_bounded(path, budget), path, _stem(path), steps_per_quarter, budget)


def checked_cutting(frame: int, rate: int, resample: bool) -> Cutting:
    """How recordings are cut, if they can be."""
    for what, value in (("frames of", frame), ("a rate of", rate)):
        if not isinstance(value, int) or not 1 <= value <= 1_000_000:
            raise InputError(f"{what} {value} samples were asked for; give 1 to 1,000,000.")
    return Cutting(frame, rate, resample)


def _load_folder(path: Path, steps_per_quarter: float | int | None, split_seed: int, cutting: Cutting) -> Dataset:
    if timit.is_timit(path):
        return timit.load_timit(path, frame=cutting.frame)
    if is_recordings_folder(path):
        return from_recordings(path, path.resolve().name, cutting, split_seed)
    steps = steps_per_quarter or _DEFAULT_STEPS_PER_QUARTER
    return from_midi_folder(path, path.resolve().name, steps, split_seed, Budget(path))


def _load_known(entry: KnownDataset, path: Path) -> Dataset:
    budget = Budget(path)
    content = read_bounded(path, budget)
    if not entry.embedded:
        verify_checksum(entry, content, path)
    return entry.verify(_read(content, path, entry.name, entry.steps_per_quarter, budget))


def verify_checksum(entry: KnownDataset, content: bytes, path: Path | str) -> None:
    """Refuses any file but the known ones, before a byte of it is interpreted."""
    expected = entry.matlab_sha256 if is_matlab(content) else entry.pickle_sha256
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise InputError(
            f"{path} is not the known file of {entry.name!r}: SHA-256 {found}, expected {expected}; "
            f"run `fivo data fetch {entry.name}`, or load the file by its path to use it as it is."
        )


def _read(content: bytes, path: Path, name: str, steps_per_quarter: float | int | None, budget: Budget) -> Dataset:
    if content.startswith(b"PK\x03\x04") or path.suffix == ".npz":
        return from_npz(content, name, steps_per_quarter, budget)
    steps = steps_per_quarter or _DEFAULT_STEPS_PER_QUARTER
    if is_matlab(content) or path.suffix == ".mat":
        return from_matlab(content, name, steps, budget)
    if content.startswith(_PICKLE_MAGIC) or _base(path).endswith(_PICKLE_SUFFIXES):
        return from_pickle(content, name, steps, budget)
    raise _other(path)


def _other(path: Path) -> InputError:
    return InputError(
        f"{path} is a kind of file that is not supported as a dataset yet; give a pickle of note lists, an .npz, "
        "or a folder of MIDI files or of recordings."
    )


def _base(path: Path) -> str:
    """The name without what compression added to it."""
    return path.name.removesuffix(".xz").removesuffix(".gz")


def _stem(path: Path) -> str:
    name = path.name
    while Path(name).suffix in _SUFFIXES:
        name = Path(name).stem
    return name or path.name
