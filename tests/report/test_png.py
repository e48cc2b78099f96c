"""PNG files hold the pixels that were given; pianorolls have their notes where a reader looks for them."""

import struct
import zlib

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import pianoroll_image, write_pianoroll, write_png
from fivo.report.png import LEFT, NOTE, NOTE_ONSET, PREFIX_NOTE, PREFIX_ONSET, ROW_HEIGHT, TOP
from tests.report.pianorolls import random_roll


def read_back(path) -> np.ndarray:
    """The image, with every checksum verified; our files have no row filters."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, position = {}, 8
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        kind, content = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(kind + content)
        chunks[kind] = content
        position += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *layout = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert layout == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 3), (300, 200, 3)])
def test_round_trip(tmp_path, shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    write_png(tmp_path / "image.png", image)
    np.testing.assert_array_equal(read_back(tmp_path / "image.png"), image)


@pytest.mark.parametrize(
    "image",
    [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)],
)
def test_what_is_no_image(tmp_path, image):
    with pytest.raises(InputError, match=r"expected uint8 of shape \[height, width, 3\]"):
        write_png(tmp_path / "image.png", image)


def notes_of(image: np.ndarray, highest: int, num_steps: int, step_width: int, colours) -> np.ndarray:
    """The pianoroll that a reader sees, from the middle of every cell."""
    roll = np.zeros((num_steps, 88), np.uint8)
    for note in range(21, highest + 1):
        row = TOP + (highest - note) * ROW_HEIGHT + ROW_HEIGHT // 2
        if row < image.shape[0] - 32:
            columns = image[row, LEFT + step_width // 2 + step_width * np.arange(num_steps)]
            roll[:, note - 21] = sum((columns == colour).all(axis=1) for colour in colours)
    return roll


def test_notes_are_drawn_low_at_the_bottom():
    roll = random_roll(64)
    roll[0, [0, 87]] = 1
    image = pianoroll_image(roll)
    np.testing.assert_array_equal(notes_of(image, 108, 64, 20, [NOTE]), roll)


def test_prefix_has_its_own_colour():
    roll = random_roll(64)
    roll[0, [0, 87]] = 1
    image = pianoroll_image(roll, prefix=10)
    given, continued = roll.copy(), roll.copy()
    given[10:], continued[:10] = 0, 0
    np.testing.assert_array_equal(notes_of(image, 108, 64, 20, [PREFIX_NOTE]), given)
    np.testing.assert_array_equal(notes_of(image, 108, 64, 20, [NOTE]), continued)


def test_a_held_note_begins_once():
    roll = np.zeros((20, 88), np.uint8)
    roll[2:9, 40] = 1
    roll[12:14, 40] = 1
    image = pianoroll_image(roll, prefix=10)
    assert (image == PREFIX_ONSET).all(axis=2).any(axis=0).sum() == 4
    assert (image == NOTE_ONSET).all(axis=2).any(axis=0).sum() == 4


def test_only_the_octaves_with_notes_are_added():
    def height_with(note: int) -> int:
        roll = np.zeros((8, 88), np.uint8)
        roll[3, note - 21] = 1
        return pianoroll_image(roll).shape[0]

    silent = pianoroll_image(np.zeros((8, 88))).shape[0]
    assert height_with(36) == height_with(95) == silent
    assert height_with(35) == height_with(96) == silent + 12 * ROW_HEIGHT
    assert height_with(21) == silent + 15 * ROW_HEIGHT
    assert height_with(108) == silent + 13 * ROW_HEIGHT


@pytest.mark.parametrize("num_steps", [1, 2, 16, 128, 10240])
@pytest.mark.parametrize("whole", [False, True])
def test_every_length_can_be_drawn(num_steps, whole):
    image = pianoroll_image(random_roll(num_steps), prefix=num_steps if whole else 0)
    assert image.dtype == np.uint8
    assert image.shape[1] <= max(1400, 100 + 2 * num_steps)


def test_written_as_drawn(tmp_path):
    roll = random_roll(30)
    write_pianoroll(tmp_path / "roll.png", roll, prefix=5)
    np.testing.assert_array_equal(read_back(tmp_path / "roll.png"), pianoroll_image(roll, prefix=5))


@pytest.mark.parametrize("prefix", [-1, 31])
def test_impossible_prefix(prefix):
    with pytest.raises(InputError, match=rf"prefix is {prefix} steps; expected 0 to 30"):
        pianoroll_image(random_roll(30), prefix=prefix)


def test_what_is_no_pianoroll():
    with pytest.raises(InputError, match="threshold or sample"):
        pianoroll_image(np.full((4, 88), 0.3))
