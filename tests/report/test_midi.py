"""What mido reads back from our MIDI files is the pianoroll that was written."""

import mido
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import write_midi
from tests.report.pianorolls import random_roll


def read_back(path, num_steps: int, steps_per_quarter: int) -> np.ndarray:
    song = mido.MidiFile(path)
    ticks_per_step = song.ticks_per_beat / steps_per_quarter
    roll = np.zeros((num_steps, 88), np.uint8)
    began, now = {}, 0
    for message in mido.merge_tracks(song.tracks):
        now += message.time
        if message.type == "note_on":
            assert message.note not in began, "a note began twice"
            began[message.note] = now
        elif message.type == "note_off":
            start, stop = began.pop(message.note) / ticks_per_step, now / ticks_per_step
            assert start == int(start)
            assert stop == int(stop)
            roll[int(start) : int(stop), message.note - 21] += 1
    assert not began, "a note never ended"
    assert now == num_steps * ticks_per_step
    return roll


@pytest.mark.parametrize(("num_steps", "steps_per_quarter"), [(1, 1), (50, 1), (50, 2), (200, 3), (5000, 4)])
def test_round_trip(tmp_path, num_steps, steps_per_quarter):
    roll = random_roll(num_steps)
    roll[-1, [0, 87]] = 1
    write_midi(tmp_path / "song.mid", roll, steps_per_quarter=steps_per_quarter)
    np.testing.assert_array_equal(read_back(tmp_path / "song.mid", num_steps, steps_per_quarter), roll)


@pytest.mark.parametrize("value", [0, 1])
def test_silence_and_noise(tmp_path, value):
    roll = np.full((5000, 88), bool(value))
    write_midi(tmp_path / "song.mid", roll)
    np.testing.assert_array_equal(read_back(tmp_path / "song.mid", 5000, 1), roll)


def test_consecutive_steps_are_one_held_note(tmp_path):
    roll = np.zeros((6, 88), np.uint8)
    roll[[0, 1, 2, 4], 39] = 1
    write_midi(tmp_path / "song.mid", roll)
    (track,) = mido.MidiFile(tmp_path / "song.mid").tracks
    assert [message.note for message in track if message.type == "note_on"] == [60, 60]


def test_notes_end_before_others_begin(tmp_path):
    write_midi(tmp_path / "song.mid", np.tile(np.eye(88), (3, 1))[::-1])
    (track,) = mido.MidiFile(tmp_path / "song.mid").tracks
    sounding = np.cumsum([{"note_on": 1, "note_off": -1}.get(message.type, 0) for message in track])
    assert sounding.max() == 1


@pytest.mark.parametrize("tempo", [60, 100, 137.5])
def test_length_in_seconds(tmp_path, tempo):
    write_midi(tmp_path / "song.mid", random_roll(64), steps_per_quarter=2, tempo=tempo)
    assert mido.MidiFile(tmp_path / "song.mid").length == pytest.approx(32 * 60 / tempo, rel=1e-5)


@pytest.mark.parametrize(
    ("roll", "sentence"),
    [
        (np.zeros((4, 87)), r"must have shape \[T, 88\] .*, got \[4, 87\]"),
        (np.zeros((2, 4, 88)), r"must have shape \[T, 88\] .*, got \[2, 4, 88\]"),
        (np.zeros((0, 88)), "at least one time step"),
        (np.full((4, 88), 0.5), "threshold or sample probabilities"),
        (np.full((4, 88), np.nan), "got other entries"),
        (np.full((4, 88), 90, np.uint8), "got other entries"),
        (np.full((4, 88), "1"), "got other entries"),
        ([[0] * 88, [0] * 87], "rows of different lengths"),
    ],
)
def test_what_is_no_pianoroll(tmp_path, roll, sentence):
    with pytest.raises(InputError, match=sentence):
        write_midi(tmp_path / "song.mid", roll)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps_per_quarter": 0}, "steps_per_quarter must be an integer from 1 to 96, got 0"),
        ({"steps_per_quarter": 97}, "got 97"),
        ({"tempo": 0}, "tempo must be 10 to 1000 quarter notes a minute, got 0"),
        ({"tempo": float("nan")}, "got nan"),
    ],
)
def test_impossible_speed(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        write_midi(tmp_path / "song.mid", random_roll(4), **options)
