"""Pianorolls from the note lists of the original pickles."""

from pathlib import Path
from typing import Any

import numpy as np

from fivo.data.compression import MAX_BYTES
from fivo.data.dataset import HIGHEST_NOTE, LOWEST_NOTE, NOTES, SPLITS, Dataset, Frames
from fivo.data.unpickle import loads
from fivo.errors import InputError


def from_pickle(content: bytes, path: Path, name: str, steps_per_quarter: float | int) -> Dataset:
    """Reads `{"train": [sequence, ...], "valid": ..., "test": ...}`; a sequence lists the notes of each step."""
    root = loads(content, str(path))
    if not isinstance(root, dict) or set(root) != set(SPLITS):
        found = f"the keys {sorted(root)}" if isinstance(root, dict) else f"a {type(root).__name__}"
        raise InputError(f"{path} holds {found:.200}, but a dict of train, valid and test is needed.")
    _refuse_expansion(root, path)
    splits: dict[str, list[Frames]] = {}
    for split in SPLITS:
        splits[split] = [
            _roll(sequence, f"{path}: {split} sequence {index}")
            for index, sequence in enumerate(_list(root[split], f"{path}: {split}"))
        ]
    return Dataset.pianoroll(name, splits, steps_per_quarter)


def _list(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{where} is a {type(value).__name__}, but a list is needed.")
    return value


def _refuse_expansion(root: dict[str, Any], path: Path) -> None:
    """A pickle may hold one list a million times over; its frames would fill the memory."""
    steps = sum(
        len(sequence)
        for split in SPLITS
        for sequence in _list(root[split], f"{path}: {split}")
        if isinstance(sequence, (list, tuple))
    )
    if steps * NOTES > MAX_BYTES:
        raise InputError(
            f"{path} unfolds to {steps:,} steps, more than the {MAX_BYTES // NOTES:,} that are read; split it up."
        )


def _roll(sequence: Any, where: str) -> Frames:
    steps = _list(sequence, where)
    if not steps:
        raise InputError(f"{where} is empty; remove it or give it at least one step.")
    roll = bytearray(len(steps) * NOTES)
    for time, notes in enumerate(steps):
        if len(_list(notes, f"{where}, step {time}")) > NOTES:
            raise InputError(f"{where}, step {time} holds {len(notes)} notes, but a piano has {NOTES}; remove some.")
        for note in notes:
            if type(note) is not int:
                raise InputError(
                    f"{where}, step {time} holds a {type(note).__name__}, but MIDI note numbers are needed."
                )
            if not LOWEST_NOTE <= note <= HIGHEST_NOTE:
                raise InputError(
                    f"{where}, step {time} holds note {note}, not in {LOWEST_NOTE}..{HIGHEST_NOTE}; "
                    "transpose or remove it."
                )
            roll[time * NOTES + note - LOWEST_NOTE] = 1
    return np.frombuffer(roll, dtype=np.uint8).reshape(len(steps), NOTES)
