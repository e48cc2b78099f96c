"""Any folder of recordings: which file belongs to which split."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fivo.data.budget import Budget
from fivo.data.dataset import Dataset
from fivo.data.places import files_below, walk_files
from fivo.data.speech.cache import Cutting, cached_dataset
from fivo.data.speech.recording import SUFFIXES
from fivo.data.splits import SPLITS
from fivo.errors import InputError

HELD_OUT = 0.1
"""Of the speakers, for each split that is drawn."""


def is_recordings_folder(folder: Path) -> bool:
    """Whether there is any recording below."""
    return any(next(walk_files(place, SUFFIXES), None) for place in (folder, *split_folders(folder).values()))


def from_recordings(folder: Path, name: str, cutting: Cutting, split_seed: int) -> Dataset:
    """Every recording below `folder` is a sequence.

    Sub-folders `train`, `valid` and `test` are the splits; without `valid`, a tenth of the training speakers are it.
    Without sub-folders, a tenth of all speakers each are valid and test. Speakers are drawn with `split_seed`; a
    speaker is the folder that directly holds a recording, or the recording itself at the top.
    """
    present = split_folders(folder)
    files = {split: recordings_below(place) for split, place in present.items()}
    empty = [split for split, paths in files.items() if not paths]
    if empty:
        raise InputError(f"{present[empty[0]]} holds no recording ({', '.join(SUFFIXES)}); add some or remove it.")
    if not present:
        files = draw(recordings_below(folder), folder, ("valid", "test"), split_seed)
    elif present.keys() == {"train", "test"}:
        files |= draw(files["train"], present["train"], ("valid",), split_seed)
    elif len(present) < len(SPLITS):
        raise InputError(
            f"{folder} has a sub-folder {next(iter(present))}, but not both train and test; add or rename some."
        )
    Budget(folder).spend_sequences(sum(map(len, files.values())))
    return cached_dataset(name, files, cutting)


def split_folders(folder: Path) -> dict[str, Path]:
    """The sub-folders that are named like splits, in any case."""
    try:
        return {entry.name.lower(): entry for entry in sorted(folder.iterdir()) if _is_split(entry)}
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check its permissions.") from error


def recordings_below(folder: Path) -> list[Path]:
    """All recordings, sorted by their path within the folder."""
    return files_below(folder, SUFFIXES)


def draw(paths: Sequence[Path], folder: Path, names: Sequence[str], seed: int) -> dict[str, list[Path]]:
    """A tenth of the speakers for each of `names`, the others for train."""
    speakers = sorted({_speaker(path, folder) for path in paths})
    if len(speakers) <= len(names):
        raise InputError(
            f"{folder} holds recordings of {len(speakers)} speakers, but at least {len(names) + 1} are needed to draw "
            f"{' and '.join(names)}; give each speaker a folder, or make sub-folders {', '.join(SPLITS)}."
        )
    held_out = max(1, round(HELD_OUT * len(speakers)))
    order = np.argsort(np.random.Philox(np.random.SeedSequence(seed)).random_raw(len(speakers)), kind="stable")
    split_of = {
        speakers[index]: names[place // held_out] if place < held_out * len(names) else "train"
        for place, index in enumerate(order)
    }
    return {split: [path for path in paths if split_of[_speaker(path, folder)] == split] for split in ("train", *names)}


def _speaker(path: Path, folder: Path) -> str:
    relative = path.relative_to(folder)
    return relative.as_posix() if len(relative.parts) == 1 else relative.parent.as_posix()


def _is_split(entry: Path) -> bool:
    return entry.name.lower() in SPLITS and os.path.isdir(entry)
