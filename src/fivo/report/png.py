"""Pictures of pianorolls as PNG files, without an imaging library."""

import os
import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.files import replacing
from fivo.report.glyphs import text_pixels
from fivo.report.roll import LOWEST_NOTE, NUM_NOTES, as_pianoroll

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
EIGHT_BITS, TRUE_COLOUR = 8, 2

PAPER = (255, 255, 255)
BLACK_KEY_PAPER = (243, 244, 247)
BEAT_LINE = (226, 228, 234)
BAR_LINE = (190, 195, 205)
INK = (82, 88, 102)
# Blue and orange of Okabe and Ito's palette, which colour-blind readers can tell apart.
NOTE, NOTE_ONSET = (0, 114, 178), (0, 66, 110)
PREFIX_NOTE, PREFIX_ONSET = (230, 159, 0), (158, 98, 0)
PREFIX_END = (213, 94, 0)

ROW_HEIGHT = 9
PREFERRED_WIDTH = 1280
NARROWEST_STEP, WIDEST_STEP = 2, 24
BEAT, BAR = 4, 16
OCTAVE = 12
BLACK_KEYS = (1, 3, 6, 8, 10)
FEWEST_NOTES = (36, 95)
LEFT, RIGHT, TOP, BOTTOM = 56, 36, 12, 32
KEYBOARD_WIDTH = 18


class _Layout(NamedTuple):
    """Where things are in the plot, the part of the image inside the margins."""

    lowest: int
    highest: int
    num_steps: int
    step_width: int

    @property
    def notes(self) -> range:
        return range(self.lowest, self.highest + 1)

    @property
    def height(self) -> int:
        return len(self.notes) * ROW_HEIGHT + 1

    @property
    def width(self) -> int:
        return self.num_steps * self.step_width + 1

    def rows(self, note: int) -> slice:
        top = (self.highest - note) * ROW_HEIGHT
        return slice(top, top + ROW_HEIGHT)


def write_png(path: str | os.PathLike[str], rgb: ArrayLike) -> None:
    """Write an image of bytes, shape [height, width, 3], as a PNG file."""
    image = np.asarray(rgb)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise InputError(
            f"The image has shape {list(image.shape)} and type {image.dtype}; expected uint8 of shape "
            "[height, width, 3], not empty: scale colours to 0 to 255 and convert them to uint8."
        )
    height, width, _ = image.shape
    # Every row begins with a byte that names its filter; 0 is none.
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = image.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, TRUE_COLOUR, 0, 0, 0)
    with replacing(path) as file:
        file.write(PNG_SIGNATURE)
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def pianoroll_image(roll: ArrayLike, prefix: int = 0) -> NDArray[np.uint8]:
    """Draw a pianoroll of 0 and 1, shape [T, 88], as an image [height, width, 3], low notes at the bottom.

    Each held note is a bar with a dark beginning. Lines mark the octaves (below every C) and every fourth step, darker
    ones every sixteenth. The first `prefix` steps, those that a model was given to continue, have another colour. Five
    octaves are shown, and as many more as have notes.
    """
    sounding = as_pianoroll(roll)
    num_steps = len(sounding)
    if not 0 <= prefix <= num_steps:
        raise InputError(f"The prefix is {prefix} steps; expected 0 to {num_steps}, the length of the pianoroll.")
    step_width = int(np.clip(PREFERRED_WIDTH // num_steps, NARROWEST_STEP, WIDEST_STEP))
    layout = _Layout(*_note_range(sounding), num_steps, step_width)
    image = np.full((TOP + layout.height + BOTTOM, LEFT + layout.width + RIGHT, 3), PAPER, np.uint8)
    plot = image[TOP : TOP + layout.height, LEFT : LEFT + layout.width]
    _draw_grid(plot, layout)
    _draw_notes(plot, layout, sounding, prefix)
    if 0 < prefix < num_steps:
        plot[:, prefix * step_width - 1 : prefix * step_width + 1] = PREFIX_END
    _draw_keyboard(image, layout)
    _draw_step_numbers(image, layout)
    return image


def write_pianoroll(path: str | os.PathLike[str], roll: ArrayLike, prefix: int = 0) -> None:
    """Write the picture of a pianoroll, shape [T, 88], as a PNG file; see `pianoroll_image`."""
    write_png(path, pianoroll_image(roll, prefix))


def _note_range(sounding: NDArray[np.bool_]) -> tuple[int, int]:
    """Lowest and highest note to show: whole octaves from C to B, cut at the ends of the keyboard."""
    notes = LOWEST_NOTE + np.flatnonzero(sounding.any(axis=0))
    lowest, highest = FEWEST_NOTES
    if len(notes):
        lowest = min(lowest, int(notes[0]) // OCTAVE * OCTAVE)
        highest = max(highest, int(notes[-1]) // OCTAVE * OCTAVE + OCTAVE - 1)
    return max(lowest, LOWEST_NOTE), min(highest, LOWEST_NOTE + NUM_NOTES - 1)


def _draw_grid(plot: NDArray[np.uint8], layout: _Layout) -> None:
    for note in layout.notes:
        if note % OCTAVE in BLACK_KEYS:
            plot[layout.rows(note)] = BLACK_KEY_PAPER
    plot[:, :: BEAT * layout.step_width] = BEAT_LINE
    for note in layout.notes:
        if note % OCTAVE == 0:
            plot[layout.rows(note).stop] = BAR_LINE
    plot[:, :: BAR * layout.step_width] = BAR_LINE
    plot[[0, -1], :] = BAR_LINE
    plot[:, [0, -1]] = BAR_LINE


def _draw_notes(plot: NDArray[np.uint8], layout: _Layout, sounding: NDArray[np.bool_], prefix: int) -> None:
    cells = sounding[:, layout.lowest - LOWEST_NOTE : layout.highest - LOWEST_NOTE + 1].T[::-1]
    onsets = cells & ~np.pad(cells, ((0, 0), (1, 0)))[:, :-1]
    # The first row of every cell stays paper, so that neighbouring semitones do not melt into one.
    bar = np.zeros((ROW_HEIGHT, layout.step_width), np.bool_)
    bar[1:] = True
    beginning = bar.copy()
    beginning[:, 1 + layout.step_width // 8 :] = False
    bars, beginnings = np.kron(cells, bar), np.kron(onsets, beginning)
    given = np.arange(bars.shape[1]) < prefix * layout.step_width
    area = plot[: bars.shape[0], : bars.shape[1]]
    area[bars & ~given] = NOTE
    area[beginnings & ~given] = NOTE_ONSET
    area[bars & given] = PREFIX_NOTE
    area[beginnings & given] = PREFIX_ONSET


def _draw_keyboard(image: NDArray[np.uint8], layout: _Layout) -> None:
    keyboard = image[TOP : TOP + layout.height, LEFT - KEYBOARD_WIDTH : LEFT + 1]
    for note in layout.notes:
        rows = layout.rows(note)
        if note % OCTAVE in BLACK_KEYS:
            keyboard[rows.start + 1 : rows.stop, : KEYBOARD_WIDTH * 3 // 5] = INK
            # White keys meet behind a black one.
            keyboard[rows.start + ROW_HEIGHT // 2, KEYBOARD_WIDTH * 3 // 5 :] = BAR_LINE
        elif note % OCTAVE in (0, 5):
            keyboard[rows.stop] = BAR_LINE
        if note % OCTAVE == 0:
            label = text_pixels(f"C{note // OCTAVE - 1}")
            top = TOP + rows.start + (ROW_HEIGHT - label.shape[0]) // 2
            _stamp(image, label, top, LEFT - KEYBOARD_WIDTH - 6 - label.shape[1])
    keyboard[:, [0, -1]] = BAR_LINE
    keyboard[[0, -1], :] = BAR_LINE


def _draw_step_numbers(image: NDArray[np.uint8], layout: _Layout) -> None:
    """Numbers of steps below the plot, whole bars apart and as far from each other as reading needs."""
    stride = BAR
    while stride * layout.step_width < 80:
        stride *= 2
    below = TOP + layout.height
    for step in range(0, layout.num_steps + 1, stride):
        column = LEFT + step * layout.step_width
        image[below : below + 5, column] = INK
        label = text_pixels(str(step))
        _stamp(image, label, below + 9, column - label.shape[1] // 2)


def _stamp(image: NDArray[np.uint8], label: NDArray[np.bool_], top: int, left: int) -> None:
    image[top : top + label.shape[0], left : left + label.shape[1]][label] = INK
