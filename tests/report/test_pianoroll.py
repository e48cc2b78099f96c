"""Pianorolls have their notes where a reader looks for them."""

import matplotlib.colors
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import plot_pianoroll, write_pianoroll
from fivo.report.pianoroll import GIVEN_NOTE, NOTE
from tests.report.pianorolls import random_roll


def notes_of(figure, colour: str) -> np.ndarray:
    """The pianoroll that a reader sees: what lies under the middle of every cell."""
    axes = figure.axes[0]
    roll = np.zeros((round(axes.get_xlim()[1]), 88), np.uint8)
    for collection in axes.collections:
        faces = collection.get_facecolor()
        if len(faces) and np.allclose(faces[0], matplotlib.colors.to_rgba(colour)):
            for path in collection.get_paths():
                (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                assert high - low < 1
                roll[round(left) : round(right), round((low + high) / 2) - 21] = 1
    return roll


def test_notes_are_drawn_low_at_the_bottom():
    roll = random_roll(64)
    roll[0, [0, 87]] = 1
    figure = plot_pianoroll(roll)
    np.testing.assert_array_equal(notes_of(figure, NOTE), roll)
    assert figure.axes[0].get_ylim() == (20.5, 108.5)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("step", "note")


def test_prefix_has_its_own_colour():
    roll = random_roll(64)
    figure = plot_pianoroll(roll, prefix=10)
    given, continued = roll.copy(), roll.copy()
    given[10:], continued[:10] = 0, 0
    np.testing.assert_array_equal(notes_of(figure, GIVEN_NOTE), given)
    np.testing.assert_array_equal(notes_of(figure, NOTE), continued)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["given", "continued"]
    assert not plot_pianoroll(roll).legends


def test_a_held_note_is_one_bar():
    roll = np.zeros((20, 88), np.uint8)
    roll[2:9, 40] = 1
    roll[12:14, 40] = 1
    bars = [c for c in plot_pianoroll(roll).axes[0].collections if len(c.get_paths()) == 2 and c.get_zorder() == 2]
    assert len(bars) == 1


def test_only_the_octaves_with_notes_are_added():
    def range_with(*notes: int) -> tuple[float, float]:
        roll = np.zeros((8, 88), np.uint8)
        roll[3, [note - 21 for note in notes]] = 1
        low, high = plot_pianoroll(roll).axes[0].get_ylim()
        return low + 0.5, high - 0.5

    assert range_with() == range_with(36, 95) == (36, 95)
    assert range_with(35, 96) == (24, 107)
    assert range_with(21, 108) == (21, 108)


@pytest.mark.parametrize("num_steps", [1, 2, 16, 128, 10240])
@pytest.mark.parametrize("whole", [False, True])
def test_every_length_can_be_drawn(tmp_path, num_steps, whole):
    write_pianoroll(tmp_path / "a.png", random_roll(num_steps), prefix=num_steps if whole else 0)
    width = int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big")
    assert 700 <= width <= max(1980, 3 * num_steps)


@pytest.mark.parametrize("prefix", [-1, 31])
def test_impossible_prefix(prefix):
    with pytest.raises(InputError, match=rf"prefix must be 0 to 30, the length of the pianoroll, got {prefix}"):
        plot_pianoroll(random_roll(30), prefix=prefix)


def test_what_is_no_pianoroll():
    with pytest.raises(InputError, match="threshold or sample"):
        plot_pianoroll(np.full((4, 88), 0.3))
