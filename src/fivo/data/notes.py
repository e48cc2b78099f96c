"""Pianorolls from the note lists of the original pickles."""

from typing import Any

import numpy as np

from fivo.data.budget import NOTES_READ, Budget
from fivo.data.dataset import Dataset
from fivo.data.frames import Frames
from fivo.data.sound import HIGHEST_NOTE, LOWEST_NOTE, NOTES
from fivo.data.splits import SPLITS
from fivo.data.unpickle import loads
from fivo.errors import InputError


def from_pickle(content: bytes, name: str, steps_per_quarter: float | int, budget: Budget) -> Dataset:
    """Reads `{"train": [sequence, ...], "valid": ..., "test": ...}`; a sequence lists the notes of each step."""
    path = budget.where
    root = loads(content, budget)
    if not isinstance(root, dict) or set(root) != set(SPLITS):
        found = f"the keys {sorted(root)[:5]}" if isinstance(root, dict) else f"a {type(root).__name__}"
        raise InputError(f"{path} holds {found:.200}, but a dict of train, valid and test is needed.")
    _refuse_expansion(root, budget)
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


def _refuse_expansion(root: dict[str, Any], budget: Budget) -> None:
    """A pickle may hold one list a million times over; its frames would fill the memory."""
    lists = [_list(root[split], f"{budget.where}: {split}") for split in SPLITS]
    budget.spend_sequences(sum(map(len, lists)))
    sequences = [sequence for split in lists for sequence in split if isinstance(sequence, (list, tuple))]
    budget.spend(sum(map(len, sequences)) * NOTES)
    notes = sum(len(step) for sequence in sequences for step in sequence if isinstance(step, (list, tuple)))
    if notes > NOTES_READ:
        raise InputError(
            f"{budget.where} unfolds to {notes:,} notes, more than the {NOTES_READ:,} that are read; split it up."
        )


def _roll(sequence: Any, where: str) -> Frames:
    steps = _list(sequence, where)
    if not steps:
        raise InputError(f"{where} is empty; remove it or give it at least one step.")
    roll = np.zeros((len(steps), NOTES), np.uint8)
    entries = roll.reshape(-1).data
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
                    f"{where}, step {time} holds note {note!s:.20}, not in {LOWEST_NOTE}..{HIGHEST_NOTE}; "
                    "transpose or remove it."
                )
            entries[time * NOTES + note - LOWEST_NOTE] = 1
    roll.setflags(write=False)
    return roll
