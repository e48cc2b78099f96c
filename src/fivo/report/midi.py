"""Pianorolls as standard MIDI files."""

import os

import numpy as np
from numpy.typing import ArrayLike

from fivo.extras import require
from fivo.files import replacing
from fivo.report.roll import as_pianoroll, check_speed, held_notes

TICKS_PER_STEP = 240
VELOCITY = 80


def write_midi(
    path: str | os.PathLike[str], pianoroll: ArrayLike, *, steps_per_quarter: int = 1, tempo: int | float = 100
) -> None:
    """Write a pianoroll as a MIDI file with one piano track.

    Consecutive active steps of a note are one held note, and silence at the end is kept: the track lasts T steps.

    Args:
        path: The file.
        pianoroll: Zeros and ones [time, 88]; column j is MIDI note 21 + j.
        steps_per_quarter: Steps per quarter note.
        tempo: Quarter notes per minute.
    """
    roll = as_pianoroll(pianoroll)
    check_speed(steps_per_quarter, tempo)
    mido = require("mido", "Writing MIDI files")
    held = held_notes(roll)
    times = np.concatenate([held.starts, held.stops]) * TICKS_PER_STEP
    is_start = np.repeat([True, False], len(held.notes))
    notes = np.tile(held.notes, 2)

    track = mido.MidiTrack()
    track.append(mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(tempo), time=0))
    track.append(mido.Message("program_change", program=0, time=0))
    now = 0
    # At one time notes end before others begin, so that no player counts both as sounding.
    for index in np.lexsort((notes, is_start, times)):
        kind = "note_on" if is_start[index] else "note_off"
        velocity = VELOCITY if is_start[index] else 0
        time = int(times[index])
        track.append(mido.Message(kind, note=int(notes[index]), velocity=velocity, time=time - now))
        now = time
    track.append(mido.MetaMessage("end_of_track", time=len(roll) * TICKS_PER_STEP - now))

    # A whole number of ticks for every step: no rounding, however many steps a quarter note has.
    song = mido.MidiFile(type=0, ticks_per_beat=TICKS_PER_STEP * int(steps_per_quarter))
    song.tracks.append(track)
    with replacing(path) as file:
        song.save(file=file)
