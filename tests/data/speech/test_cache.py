"""Frames are decoded once, found again by what the recordings hold, and mapped instead of read."""

import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fivo.data import load
from fivo.data.speech import cache
from fivo.errors import InputError
from tests.data.sounds import noise, riff, write

FRAME = 20


@pytest.fixture
def folder(tmp_path) -> Path:
    for number in range(5):
        write(tmp_path / "speech" / f"{number}.wav", riff(noise(90 + number, number)))
    return tmp_path / "speech"


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "fivo" / "frames").glob("*"))


@pytest.fixture
def decoded(monkeypatch) -> list[str]:
    """What is decoded from here on."""
    seen = []
    original = cache.decode
    monkeypatch.setattr(cache, "decode", lambda content, where: seen.append(where) or original(content, where))
    return seen


def test_the_second_time_nothing_is_decoded(folder, tmp_path, decoded):
    first = load(folder, frame=FRAME)
    assert decoded
    decoded.clear()
    second = load(folder, frame=FRAME)
    assert not decoded
    assert second.sound == first.sound
    assert len(entries(tmp_path)) == 2
    frames = second.splits["train"][0]
    assert isinstance(frames, np.memmap)
    assert not frames.flags.writeable


def test_what_is_remembered_is_what_the_frames_say(folder):
    dataset = load(folder, frame=FRAME)
    remembered = dataset.fingerprint, dataset.train_mean
    for name in ("fingerprint", "train_mean"):
        del vars(dataset)[name]
    assert dataset.fingerprint == remembered[0]
    np.testing.assert_allclose(dataset.train_mean, remembered[1], rtol=1e-12)


def test_content_and_cutting_are_the_key_and_not_the_place(folder, tmp_path, decoded):
    load(folder, frame=FRAME)
    decoded.clear()
    moved = load(shutil.copytree(folder, tmp_path / "moved"), frame=FRAME)
    assert not decoded
    assert moved.name == "moved"
    changed = write(tmp_path / "moved" / "0.wav", riff(noise(90, 99)))
    assert load(tmp_path / "moved", frame=FRAME).fingerprint != moved.fingerprint
    assert str(changed) in decoded
    load(folder, frame=FRAME + 1)
    assert len(entries(tmp_path)) == 6


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"{}", b'{"lengths": 3}'])
@pytest.mark.parametrize("which", [0, 1], ids=["facts", "frames"])
def test_a_damaged_entry_is_made_again(folder, tmp_path, which, damage):
    good = load(folder, frame=FRAME).fingerprint
    path = entries(tmp_path)[which]
    path.unlink()
    path.write_bytes(damage)
    assert load(folder, frame=FRAME).fingerprint == good


def test_a_failure_leaves_no_entry(folder, tmp_path, monkeypatch):
    """The second pass fails, halfway through the file of frames."""

    def full(*arguments):
        raise InputError("the disk is full.")

    monkeypatch.setattr(cache, "as_frames", full)
    with pytest.raises(InputError):
        load(folder, frame=FRAME)
    assert entries(tmp_path) == []


def test_the_corpus_is_never_in_memory(tmp_path):
    """40 recordings of 100,000 samples are 8 MB of files and 16 MB of frames; one at a time is held."""
    for number in range(40):
        write(tmp_path / "speech" / f"{number}.wav", riff(noise(100_000, number)))
    tracemalloc.start()
    try:
        dataset = load(tmp_path / "speech")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(frames for _, frames in dataset.counts.values()) == 40 * 500
    assert peak < 4e6
