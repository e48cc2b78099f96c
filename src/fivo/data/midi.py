"""Pianorolls from a folder of MIDI files."""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fivo.data.compression import MAX_BYTES
from fivo.data.dataset import HIGHEST_NOTE, LOWEST_NOTE, NOTES, SPLITS, Dataset, Frames
from fivo.errors import InputError

if TYPE_CHECKING:
    import mido

_DRUM_CHANNEL = 9
_SUFFIXES = (".mid", ".midi")
_HELD_OUT = 0.1


def from_midi_folder(folder: Path, name: str, steps_per_quarter: float | int, split_seed: int) -> Dataset:
    """Every MIDI file below `folder` is a sequence.

    With sub-folders `train`, `valid` and `test` those are the splits; otherwise a tenth of the files each, drawn with
    `split_seed`, are valid and test.
    """
    present = [split for split in SPLITS if (folder / split).is_dir()]
    if present and len(present) < len(SPLITS):
        raise InputError(
            f"{folder} has a sub-folder {present[0]}, but not all of train, valid and test; add or remove some."
        )
    files = (
        {split: _midi_files(folder / split) for split in SPLITS}
        if present
        else _draw(_midi_files(folder), folder, split_seed)
    )
    rolls = {split: [read_midi(path, steps_per_quarter) for path in paths] for split, paths in files.items()}
    return Dataset.pianoroll(name, rolls, steps_per_quarter)


def _midi_files(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file()]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


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


def read_midi(path: Path, steps_per_quarter: float | int) -> Frames:
    """What sounds at each step; a note between two steps is not seen, drums are left out."""
    import mido

    try:
        midi = mido.MidiFile(file=io.BytesIO(path.read_bytes()))
    except Exception as error:  # mido lets whatever a malformed file provokes escape
        raise InputError(
            f"{path} is not a readable MIDI file ({error or type(error).__name__}); repair or remove it."
        ) from error
    if not 0 < midi.ticks_per_beat < 0x8000:
        raise InputError(f"{path} counts time in film frames instead of quarter notes; convert it first.")
    notes = _notes(midi)
    if not notes:
        raise InputError(f"{path} is empty: it has no note; remove it.")
    ticks = midi.ticks_per_beat / steps_per_quarter
    spans = [(note, math.ceil(start / ticks), math.ceil(end / ticks)) for note, start, end in notes]
    length = max(end for _, _, end in spans)
    if length * NOTES > MAX_BYTES:
        raise InputError(
            f"{path} is {length:,} steps long, more than the {MAX_BYTES // NOTES:,} that are read; cut it."
        )
    roll = np.zeros((length, NOTES), dtype=np.uint8)
    for note, start, end in spans:
        if not LOWEST_NOTE <= note <= HIGHEST_NOTE:
            raise InputError(
                f"{path}, step {start} holds note {note}, not in {LOWEST_NOTE}..{HIGHEST_NOTE}; transpose or remove it."
            )
        roll[start:end, note - LOWEST_NOTE] = 1
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
