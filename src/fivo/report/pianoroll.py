"""Pictures of pianorolls."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.extras import require
from fivo.report.figures import dress, new_figure, write_figure
from fivo.report.roll import LOWEST_NOTE, NUM_NOTES, as_pianoroll, held_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLACK_KEY_PAPER = "#F3F4F7"
BEAT_LINE, BAR_LINE = "#E2E4EA", "#BEC3CD"
# Blue and orange of Okabe and Ito's palette, which colour-blind readers can tell apart.
NOTE, GIVEN_NOTE, GIVEN_END = "#0072B2", "#E69F00", "#D55E00"

STEP, ROW, MARGIN = 0.13, 0.055, 0.9
"""Inches."""
NARROWEST, WIDEST = 5.0, 400.0
BEAT, BAR = 4, 16
OCTAVE = 12
BLACK_KEYS = (1, 3, 6, 8, 10)
FEWEST_NOTES = (36, 95)
MOST_NUMBERS = 16


def plot_pianoroll(pianoroll: ArrayLike, prefix: int = 0, *, title: str = "") -> "Figure":
    """Plot a pianoroll, low notes at the bottom.

    Each held note is a bar. Lines mark every fourth step, darker ones every sixteenth. Five octaves are shown, and as
    many more as have notes.

    Args:
        pianoroll: Zeros and ones [time, 88]; column j is MIDI note 21 + j.
        prefix: How many steps a model was given to continue; they have another colour.
        title: Above the plot.

    Returns:
        A matplotlib figure.
    """
    sounding = as_pianoroll(pianoroll)
    num_steps = len(sounding)
    if not 0 <= prefix <= num_steps:
        raise InputError(f"prefix must be 0 to {num_steps}, the length of the pianoroll, got {prefix}.")
    lowest, highest = _note_range(sounding)
    width = float(np.clip(MARGIN + STEP * num_steps, NARROWEST, max(13.0, min(WIDEST, 0.015 * num_steps))))
    figure = new_figure(width, MARGIN + ROW * (highest - lowest + 1))
    axes = figure.add_subplot()
    dress(axes, title, "step", "note")
    axes.set(xlim=(0, num_steps), ylim=(lowest - 0.5, highest + 0.5))
    _draw_grid(axes, lowest, highest, num_steps)
    given, continued = sounding.copy(), sounding.copy()
    given[prefix:], continued[:prefix] = False, False
    handles = [_draw_notes(axes, given, GIVEN_NOTE), _draw_notes(axes, continued, NOTE)]
    if prefix:
        axes.axvline(prefix, color=GIVEN_END, linewidth=1.5)
        figure.legend(handles, ["given", "continued"], loc="outside upper right", ncols=2, fontsize=8, frameon=False)
    return figure


def write_pianoroll(path: str | os.PathLike[str], pianoroll: ArrayLike, prefix: int = 0) -> None:
    """Write the picture of `plot_pianoroll`.

    Args:
        path: The file: .png, .svg or .pdf.
        pianoroll: Zeros and ones [time, 88].
        prefix: How many steps a model was given to continue.
    """
    write_figure(path, plot_pianoroll(pianoroll, prefix))


def _note_range(sounding: NDArray[np.bool_]) -> tuple[int, int]:
    """Lowest and highest note to show: whole octaves from C to B, cut at the ends of the keyboard."""
    notes = LOWEST_NOTE + np.flatnonzero(sounding.any(axis=0))
    lowest, highest = FEWEST_NOTES
    if len(notes):
        lowest = min(lowest, int(notes[0]) // OCTAVE * OCTAVE)
        highest = max(highest, int(notes[-1]) // OCTAVE * OCTAVE + OCTAVE - 1)
    return max(lowest, LOWEST_NOTE), min(highest, LOWEST_NOTE + NUM_NOTES - 1)


def _draw_grid(axes: Any, lowest: int, highest: int, num_steps: int) -> None:
    """Rows of the black keys, names of every C, beats and bars; numbers of steps lie whole bars apart."""
    for note in range(lowest, highest + 1):
        if note % OCTAVE in BLACK_KEYS:
            axes.axhspan(note - 0.5, note + 0.5, color=BLACK_KEY_PAPER, linewidth=0, zorder=0)
    octaves = [note for note in range(lowest, highest + 1) if note % OCTAVE == 0]
    axes.set_yticks(octaves, [f"C{note // OCTAVE - 1}" for note in octaves])
    axes.grid(False)
    axes.hlines(np.array(octaves) - 0.5, 0, num_steps, BAR_LINE, lw=0.6, zorder=1)
    axes.vlines(np.arange(0, num_steps, BEAT), lowest - 0.5, highest + 0.5, BEAT_LINE, lw=0.6, zorder=1)
    axes.vlines(np.arange(0, num_steps, BAR), lowest - 0.5, highest + 0.5, BAR_LINE, lw=0.6, zorder=1)
    stride = BAR
    while num_steps / stride > MOST_NUMBERS * max(1, num_steps * 0.015 / 13):
        stride *= 2
    axes.set_xticks(np.arange(0, num_steps + 1, stride))


def _draw_notes(axes: Any, sounding: NDArray[np.bool_], colour: str) -> Any:
    """A bar for every held note, with a thin gap to the next."""
    held = held_notes(sounding)
    left, right = held.starts + 0.06, held.stops - 0.06
    low, high = held.notes - 0.42, held.notes + 0.42
    corners = np.stack([np.stack(c, 1) for c in ((left, low), (right, low), (right, high), (left, high))], 1)
    collections = require("matplotlib.collections", "Plotting")
    return axes.add_collection(collections.PolyCollection(corners, facecolors=colour, edgecolors="none", zorder=2))
