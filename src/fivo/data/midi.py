"""Pianorolls from a folder of MIDI files."""

import io
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fivo.data.budget import MIDI_BYTES, MIDI_NUMBER_BYTES, MIDI_PARSED_BYTES, Budget
from fivo.data.compression import read_raw
from fivo.data.dataset import Dataset
from fivo.data.foreign import refusing
from fivo.data.frames import Frames, checked_positive
from fivo.data.places import files_below
from fivo.data.sound import HIGHEST_NOTE, LOWEST_NOTE, NOTES
from fivo.data.splits import SPLITS
from fivo.errors import InputError
from fivo.extras import require

if TYPE_CHECKING:
    import mido

_DRUM_CHANNEL = 9
_SUFFIXES = (".mid", ".midi")
_HELD_OUT = 0.1
_LONG_NUMBER = re.compile(rb"[\x80-\xff]{%d}" % MIDI_NUMBER_BYTES)


def from_midi_folder(
    folder: Path, name: str, steps_per_quarter: float | int, split_seed: int, budget: Budget
) -> Dataset:
    """Every MIDI file below `folder` is a sequence.

    With sub-folders `train`, `valid` and `test` those are the splits; otherwise a tenth of the files each, drawn with
    `split_seed`, are valid and test.
    """
    present = [split for split in SPLITS if os.path.isdir(folder / split)]
    if present and len(present) < len(SPLITS):
        raise InputError(
            f"{folder} has a sub-folder {present[0]}, but not all of train, valid and test; add or remove some."
        )
    files = (
        {split: files_below(folder / split, _SUFFIXES) for split in SPLITS}
        if present
        else _draw(files_below(folder, _SUFFIXES), folder, split_seed)
    )
    budget.spend_sequences(sum(map(len, files.values())))
    rolls = {split: [read_midi(path, steps_per_quarter, budget) for path in paths] for split, paths in files.items()}
    return Dataset.pianoroll(name, rolls, steps_per_quarter)


def _draw(paths: list[Path], folder: Path, seed: int) -> dict[str, list[Path]]:
    if len(paths) < len(SPLITS):
        raise InputError(
            f"{folder} holds {len(paths)} MIDI files (.mid, .midi) and no recordings, but at least three are needed to "
            "split them."
        )
    held_out = max(1, round(_HELD_OUT * len(paths)))
    order = np.argsort(np.random.Philox(np.random.SeedSequence(seed)).random_raw(len(paths)), kind="stable")
    chosen = {"valid": order[:held_out], "test": order[held_out : 2 * held_out], "train": order[2 * held_out :]}
    return {split: [paths[index] for index in sorted(chosen[split])] for split in SPLITS}


def read_midi(path: str | Path, steps_per_quarter: float | int, budget: Budget | None = None) -> Frames:
    """What sounds at each step of a MIDI file; a note between two steps is not seen, drums are left out.

    Args:
        path: The file.
        steps_per_quarter: How many steps make a quarter note.
        budget: What is left for the dataset that the file belongs to, if to any.

    Returns:
        uint8 `[T, 88]` of zeros and ones, read-only; column `j` is MIDI note `21 + j`.
    """
    checked_positive(steps_per_quarter, "`steps_per_quarter`")
    budget = budget or Budget(path)
    content = read_raw(Path(path), Budget(path), MIDI_BYTES)
    most = max(0, budget.room - len(content) * MIDI_PARSED_BYTES) // NOTES
    midi = _parse(content, str(path))
    if not 0 < midi.ticks_per_beat < 0x8000:
        raise InputError(f"{path} counts time in film frames instead of quarter notes; convert it first.")
    notes = _notes(midi)
    if not notes:
        raise InputError(f"{path} is empty: it has no note; remove it.")
    ticks = midi.ticks_per_beat / steps_per_quarter
    if max(end for _, _, end in notes) > most * ticks:  # compared before it is divided, which may overflow
        raise InputError(f"{path} is longer than the {most:,} steps for which there is memory left; cut it.")
    spans = [(note, math.ceil(start / ticks), math.ceil(end / ticks)) for note, start, end in notes]
    for note, start, _ in spans:
        if not LOWEST_NOTE <= note <= HIGHEST_NOTE:
            raise InputError(
                f"{path}, step {start} holds note {note}, not in {LOWEST_NOTE}..{HIGHEST_NOTE}; transpose or remove it."
            )
    length = max(end for _, _, end in spans)
    budget.spend(length * NOTES)
    return _roll(spans, length)


def _parse(content: bytes, where: str) -> "mido.MidiFile":
    mido = require("mido", "Reading MIDI files")
    # mido reads a number as long as the file says, in a time that grows with the square of its length.
    if _LONG_NUMBER.search(content):
        raise InputError(f"{where} has a number of more than {MIDI_NUMBER_BYTES:,} bytes; repair or remove it.")
    with refusing(where, "MIDI file", "repair or remove it"):
        return mido.MidiFile(file=io.BytesIO(content))


def _roll(spans: list[tuple[int, int, int]], length: int) -> Frames:
    """Written once from beginning to end, however many notes sound for however long."""
    changes = [(step, change, note) for note, *ends in spans for step, change in zip(ends, (1, -1), strict=True)]
    roll = np.zeros((length, NOTES), dtype=np.uint8)
    sounding = np.zeros(NOTES, dtype=np.int64)
    written = 0
    for step, change, note in sorted(changes):
        if step > written:
            roll[written:step] = sounding > 0
            written = step
        sounding[note - LOWEST_NOTE] += change
    roll.setflags(write=False)
    return roll


def _notes(midi: "mido.MidiFile") -> list[tuple[int, int, int]]:
    """(note, start, end) in ticks, ended by the note's release, its next attack, or the end of its track."""
    notes: list[tuple[int, int, int]] = []
    for track in midi.tracks:
        sounding: dict[tuple[int, int], int] = {}
        now = 0
        for message in track:
            now += message.time
            if message.type not in ("note_on", "note_off") or message.channel == _DRUM_CHANNEL:
                continue
            key = (message.channel, message.note)
            if key in sounding:
                notes.append((message.note, sounding.pop(key), now))
            if message.type == "note_on" and message.velocity:
                sounding[key] = now
        notes += [(note, start, now) for (_, note), start in sounding.items()]
    return [(note, start, end) for note, start, end in notes if end > start]
