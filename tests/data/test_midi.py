"""Folders of MIDI files."""

from pathlib import Path

import mido
import numpy as np
import pytest

from fivo.data import LOWEST_NOTE, load
from fivo.errors import InputError

QUARTER = 480


def write(path: Path, notes: list[tuple[int, float, float]], channel: int = 0) -> None:
    """Notes are (number, start, end) in quarters."""
    events = [(start, 1, note) for note, start, _ in notes] + [(end, 0, note) for note, _, end in notes]
    track, now = mido.MidiTrack(), 0
    for time, attack, note in sorted(events):
        tick = round(time * QUARTER)
        kind = "note_on" if attack else "note_off"
        track.append(mido.Message(kind, note=note, velocity=64, channel=channel, time=tick - now))
        now = tick
    path.parent.mkdir(parents=True, exist_ok=True)
    mido.MidiFile(ticks_per_beat=QUARTER, tracks=[track]).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten files, each with a note of its own."""
    for index in range(10):
        write(tmp_path / "music" / f"{index}.mid", [(40 + index, 0, 2)])
    return tmp_path / "music"


def test_each_step_holds_what_sounds_at_its_start(tmp_path: Path):
    notes = [(60, 0, 1), (64, 0.5, 1.5), (67, 0.75, 0.9), (72, 1.25, 2), (60, 1, 1.5)]
    for split in ("train", "valid", "test"):
        write(tmp_path / split / "piece.MID", notes)
    sounding = [np.flatnonzero(frame) + LOWEST_NOTE for frame in load(tmp_path, steps_per_quarter=2).splits["train"][0]]
    assert [notes.tolist() for notes in sounding] == [[60], [60, 64], [60, 64], [72]]
    fine = load(tmp_path, steps_per_quarter=4).splits["train"][0]
    assert len(fine) == 8
    assert np.flatnonzero(fine[3]).tolist() == [60 - LOWEST_NOTE, 64 - LOWEST_NOTE, 67 - LOWEST_NOTE]


def test_the_default_step_is_an_eighth_note(folder):
    dataset = load(folder)
    assert dataset.sound.steps_per_quarter == 2
    assert all(len(roll) == 4 for rolls in dataset.splits.values() for roll in rolls)


def test_sub_folders_are_the_splits(tmp_path: Path):
    for split, note in (("train", 50), ("valid", 60), ("test", 70)):
        write(tmp_path / split / "deep" / "piece.midi", [(note, 0, 1)])
    splits = load(str(tmp_path)).splits
    assert {split: int(np.flatnonzero(rolls[0][0])[0]) + LOWEST_NOTE for split, rolls in splits.items()} == {
        "train": 50,
        "valid": 60,
        "test": 70,
    }


def test_a_drawn_split_uses_every_file_once_and_depends_on_its_seed(folder):
    dataset = load(folder, split_seed=1)
    assert {split: count for split, (count, _) in dataset.counts.items()} == {"train": 8, "valid": 1, "test": 1}
    notes = [int(np.flatnonzero(roll[0])[0]) + LOWEST_NOTE for rolls in dataset.splits.values() for roll in rolls]
    assert sorted(notes) == list(range(40, 50))
    assert load(folder, split_seed=1).fingerprint == dataset.fingerprint
    assert len({load(folder, split_seed=seed).fingerprint for seed in range(5)}) > 1


def test_a_note_that_never_ends_lasts_to_the_end_of_its_track(folder):
    track = mido.MidiTrack([mido.Message("note_on", note=60, time=0), mido.Message("note_on", note=90, time=QUARTER)])
    track.append(mido.Message("note_on", note=90, velocity=0, time=QUARTER))
    for index in range(10):
        mido.MidiFile(ticks_per_beat=QUARTER, tracks=[track]).save(folder / f"{index}.mid")
    assert load(folder, steps_per_quarter=1).splits["train"][0][:, 60 - LOWEST_NOTE].tolist() == [1, 1]


def broken(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30])


def drums_only(path: Path) -> None:
    write(path, [(40, 0, 1)], channel=9)


def too_high(path: Path) -> None:
    write(path, [(110, 0, 1)])


def in_film_frames(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[12:14] = b"\xe7\x28"
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (broken, r"3\.mid is not a readable MIDI file"),
        (drums_only, r"3\.mid is empty: it has no note"),
        (too_high, r"3\.mid, step 0 holds note 110, not in 21\.\.108"),
        (in_film_frames, r"3\.mid counts time in film frames"),
    ],
)
def test_a_bad_file_is_one_sentence(folder, damage, sentence):
    damage(folder / "3.mid")
    with pytest.raises(InputError, match=sentence):
        load(folder)


def test_too_few_files_are_one_sentence(tmp_path: Path):
    with pytest.raises(InputError, match="holds 0 MIDI files"):
        load(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(InputError, match="has a sub-folder train, but not all"):
        load(tmp_path)


@pytest.mark.parametrize("step", [0, -1, float("nan"), float("inf")])
def test_a_step_must_be_positive(folder, step):
    with pytest.raises(InputError, match="give a positive number"):
        load(folder, steps_per_quarter=step)
