"""What a pianoroll is, for the writers of this package: checked once, read as held notes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError

LOWEST_NOTE = 21
NUM_NOTES = 88
MAX_STEPS_PER_QUARTER = 96
SLOWEST_TEMPO = 10
FASTEST_TEMPO = 1000


class HeldNotes(NamedTuple):
    """Runs of consecutive active steps, ordered by note and then by time; each array has shape [notes]."""

    notes: NDArray[np.intp]
    """MIDI note numbers, 21 to 108."""
    starts: NDArray[np.intp]
    """First active step."""
    stops: NDArray[np.intp]
    """First step that is silent again."""


def as_pianoroll(roll: ArrayLike) -> NDArray[np.bool_]:
    """`roll` as a boolean array of shape [T, 88], T >= 1; column j is MIDI note 21 + j."""
    try:
        array = np.asarray(roll)
    except ValueError as error:
        raise InputError(
            "a pianoroll must be an array of shape [T, 88], got rows of different lengths; give every time step 88 "
            "entries, one for each of the MIDI notes 21 to 108."
        ) from error
    if array.ndim != 2 or array.shape[1] != NUM_NOTES or array.shape[0] == 0:
        raise InputError(
            f"a pianoroll must have shape [T, 88] with at least one time step, got {list(array.shape)}; pass one piece "
            "at a time, with a column for each of the MIDI notes 21 to 108."
        )
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError(
            "a pianoroll must be 1 where a note sounds and 0 elsewhere, got other entries (of type "
            f"{array.dtype}); threshold or sample probabilities first."
        )
    return array.astype(np.bool_)


def held_notes(roll: NDArray[np.bool_]) -> HeldNotes:
    """The notes of a checked pianoroll [T, 88]; consecutive active steps are one held note."""
    silence = np.zeros((NUM_NOTES, 1), np.int8)
    changes = np.diff(roll.T.astype(np.int8), axis=1, prepend=silence, append=silence)
    # Both searches run note by note and, within a note, in time: the i-th start belongs to the i-th stop.
    columns, starts = np.nonzero(changes == 1)
    _, stops = np.nonzero(changes == -1)
    return HeldNotes(columns + LOWEST_NOTE, starts, stops)


def check_speed(steps_per_quarter: int, tempo: int | float) -> None:
    """Refuse a `steps_per_quarter` or a `tempo` (quarter notes a minute) that music does not have."""
    whole = isinstance(steps_per_quarter, int | np.integer) and not isinstance(steps_per_quarter, bool)
    if not whole or not 1 <= steps_per_quarter <= MAX_STEPS_PER_QUARTER:
        raise InputError(
            f"steps_per_quarter must be an integer from 1 to {MAX_STEPS_PER_QUARTER}, got {steps_per_quarter!r}; use 1 "
            "for the JSB chorales and 2 for the other pianoroll sets."
        )
    if not SLOWEST_TEMPO <= tempo <= FASTEST_TEMPO:
        raise InputError(
            f"tempo must be {SLOWEST_TEMPO} to {FASTEST_TEMPO} quarter notes a minute, got {tempo}; try 100."
        )
