"""MIDI files that take long or become large."""

import os
import struct
from pathlib import Path

import pytest

from fivo.data import read_midi
from fivo.errors import InputError
from tests.data.measured import MEMORY, SLACK, measured
from tests.data.sounds import write
from tests.sentences import assert_one_sentence


def midi(track: bytes, ticks: int = 480) -> bytes:
    header = b"MThd" + struct.pack(">IHHH", 6, 1, 1, ticks)
    return header + b"MTrk" + struct.pack(">I", len(track)) + track


def number(value: int) -> bytes:
    """As MIDI writes it: seven bits a byte, the highest first, all but the last marked."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(0x80 | value & 0x7F)
    return bytes(reversed(groups))


END = b"\x00\xff\x2f\x00"


def long_note(length: int, note: int = 60) -> bytes:
    return b"\x00\x90" + bytes([note, 64]) + number(length) + b"\x80" + bytes([note, 0]) + END


def folder(path: Path, *contents: bytes) -> Path:
    for index, content in enumerate(contents):
        write(path / "music" / f"{index}.mid", content)
    return path / "music"


def test_three_small_files_of_long_notes_share_one_budget(tmp_path):
    """Each becomes 22 MB, three of which are more than the budget."""
    place = folder(tmp_path, *[midi(long_note(260_000), ticks=2)] * 3)
    assert all(path.stat().st_size < 50 for path in place.iterdir())
    [outcome] = measured(place)
    assert_one_sentence(outcome.sentence, ".mid is longer than the")
    assert outcome.peak < MEMORY + SLACK
    [fits] = measured(folder(tmp_path / "fits", *[midi(long_note(230_000), ticks=2)] * 3))
    assert fits.sentence == ""


def test_the_real_budget_holds(tmp_path):
    [outcome] = measured(folder(tmp_path, *[midi(long_note((1 << 28) - 1), ticks=45)] * 3), memory=None)
    assert_one_sentence(outcome.sentence, "is longer than the")
    assert outcome.peak < 1 << 30


def test_many_long_notes_are_written_once(tmp_path):
    """All 88 notes in the 15 channels that have no drums, each for 2.5 million steps."""
    channels = [channel for channel in range(16) if channel != 9]
    notes = b"".join(bytes([0, 0x90 | channel, note, 64]) for channel in channels for note in range(21, 109))
    track = notes + number(20_000_000) + b"\x90\x3c\x00" + END
    path = write(tmp_path / "long.mid", midi(track, ticks=16))
    [outcome] = measured(path, function="read_midi", memory=None, steps_per_quarter=2)
    assert outcome.sentence == ""
    assert outcome.seconds < 5


def test_a_number_of_a_megabyte_is_refused_at_once(tmp_path):
    track = b"\x81" * ((1 << 20) - 100) + b"\x00\x90\x3c\x40" + END
    [outcome] = measured(write(tmp_path / "long.mid", midi(track)), function="read_midi", steps_per_quarter=2)
    assert_one_sentence(outcome.sentence, "long.mid", "a number of more than 4,096 bytes")
    assert outcome.seconds < 1


def test_a_number_that_no_float_holds_is_one_sentence(tmp_path):
    for length in (2_000, 300, 30):
        track = b"\x00\x90\x3c\x40" + b"\xff" * length + b"\x00\x80\x3c\x40" + END
        with pytest.raises(InputError) as refused:
            read_midi(write(tmp_path / "long.mid", midi(track)), 2)
        assert_one_sentence(refused.value, "long.mid is longer than")


def test_a_sparse_file_is_not_read(tmp_path):
    path = write(tmp_path / "sparse.mid", midi(long_note(480)))
    os.truncate(path, 30 << 30)
    [outcome] = measured(path, function="read_midi", memory=None, steps_per_quarter=2)
    assert_one_sentence(outcome.sentence, "holds 32,212,254,720 bytes")
    assert outcome.peak < SLACK


def test_the_largest_file_takes_seconds(tmp_path):
    notes = b"\x00\x40\x40\x01\x40\x00" * 170_000
    path = write(tmp_path / "full.mid", midi(b"\x00\x90\x40\x40" + notes + END))
    [outcome] = measured(path, function="read_midi", memory=None, steps_per_quarter=480)
    assert outcome.sentence == ""
    assert outcome.seconds < 15
    assert outcome.peak < 320 << 20


def test_an_extreme_step_is_one_sentence(tmp_path):
    path = write(tmp_path / "a.mid", midi(long_note(480)))
    assert len(read_midi(path, 1e-300)) == 1
    for steps in (1e300, 10**400, 5e-324):
        with pytest.raises(InputError) as refused:
            read_midi(path, steps)
        assert_one_sentence(refused.value)
