"""Any folder of recordings: splits, rates, and what is wrong with a file."""

from pathlib import Path

import numpy as np
import pytest

from fivo.data import load
from fivo.data.speech.folder import draw, recordings_below
from fivo.errors import InputError
from tests.data.sounds import nist, noise, riff, write
from tests.sentences import assert_one_sentence

FRAME = 20


def speakers(folder: Path, count: int, each: int = 2) -> Path:
    for speaker in range(count):
        for number in range(each):
            samples = noise(30 + 7 * number, 10 * speaker + number)
            write(folder / f"s{speaker:02}" / f"{number}.wav", riff(samples))
    return folder


def test_sub_folders_are_the_splits(tmp_path):
    lengths = {"train": (401, 200), "valid": (399,), "Test": (600, 1)}
    for split, counts in lengths.items():
        for number, count in enumerate(counts):
            content = nist(noise(count, count)) if number else riff(noise(count, count))
            write(tmp_path / split / "deep" / f"{number}.wav", content)
    dataset = load(tmp_path)
    assert dataset.kind == "waveform"
    assert dataset.counts == {"train": (2, 4), "valid": (1, 2), "test": (2, 4)}
    assert (dataset.dimension, dataset.sound.sample_rate, dataset.sound.step_seconds) == (200, 16_000, 0.0125)


def test_frames_are_standardised_and_the_last_is_filled_with_zeros(tmp_path):
    samples = {count: noise(count, count) + 3 for count in (45, 61, 20, 7)}
    for split, count in zip(("train", "train", "valid", "test"), samples, strict=True):
        write(tmp_path / split / f"{count}.wav", riff(samples[count]))
    dataset = load(tmp_path, frame=FRAME)
    training = np.concatenate([samples[45], samples[61]]).astype(np.float64)
    assert dataset.sound.scaling.mean == pytest.approx(training.mean(), rel=1e-12)
    assert dataset.sound.scaling.deviation == pytest.approx(training.std(), rel=1e-12)
    frames = dataset.splits["test"][0]
    assert frames.shape == (1, FRAME)
    np.testing.assert_allclose(frames[0, :7], (samples[7] - training.mean()) / training.std(), rtol=1e-5)
    assert (frames[0, 7:] == 0).all()
    back = dataset.sound.scaling.restore(dataset.splits["train"][0].reshape(-1))
    np.testing.assert_array_equal(np.rint(back[:45]), samples[45])


def test_speakers_are_not_shared_between_drawn_splits(tmp_path):
    paths = recordings_below(speakers(tmp_path, 20))
    drawn = draw(paths, tmp_path, ("valid", "test"), seed=3)
    held = {split: {path.parent.name for path in chosen} for split, chosen in drawn.items()}
    assert {split: len(names) for split, names in held.items()} == {"train": 16, "valid": 2, "test": 2}
    assert len(set.union(*held.values())) == 20
    assert sorted(path for chosen in drawn.values() for path in chosen) == paths
    assert drawn == draw(paths, tmp_path, ("valid", "test"), seed=3) != draw(paths, tmp_path, ("valid", "test"), seed=4)


def test_validation_is_drawn_from_the_training_speakers(tmp_path):
    speakers(tmp_path / "train", 10)
    speakers(tmp_path / "test", 2)
    assert load(tmp_path, frame=FRAME).counts == {"train": (18, 36), "valid": (2, 4), "test": (4, 8)}


def test_recordings_without_folders_are_speakers_of_their_own(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.wav", riff(noise(25, number)))
    assert [count for count, _ in load(tmp_path, frame=FRAME).counts.values()] == [1, 1, 1]


def test_other_rates_are_named_or_converted(tmp_path):
    speakers(tmp_path, 3)
    odd = write(tmp_path / "s01" / "0.wav", riff(noise(30), rate=8_000))
    with pytest.raises(InputError) as refused:
        load(tmp_path, frame=FRAME)
    assert_one_sentence(refused.value, str(odd), "8000", "sox IN -r 16000 OUT", "--resample", "--rate 8000")
    frames = {split: total for split, (_, total) in load(tmp_path, frame=FRAME, resample=True).counts.items()}
    assert sum(frames.values()) == 3 * 4 + 1  # one recording of 30 samples became one of 60


def test_a_rate_of_ones_own(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.wav", riff(noise(25, number), rate=8_000))
    assert load(tmp_path, frame=FRAME, rate=8_000).sound.sample_rate == 8_000


def test_silence_is_data_but_nothing_else_than_silence_is_not(tmp_path):
    speakers(tmp_path / "train", 2)
    write(tmp_path / "train" / "s00" / "0.wav", riff(np.zeros(50, np.int16)))
    for split in ("valid", "test"):
        write(tmp_path / split / "0.wav", riff(np.zeros(50, np.int16)))
    assert np.isfinite(load(tmp_path, frame=FRAME).splits["valid"][0]).all()
    for path in recordings_below(tmp_path / "train"):
        write(path, riff(np.zeros(50, np.int16)))
    with pytest.raises(InputError) as refused:
        load(tmp_path, frame=FRAME)
    assert_one_sentence(refused.value, "silence")


def no_test(folder: Path) -> str:
    speakers(folder / "train", 3)
    return "not both train and test"


def no_recording(folder: Path) -> str:
    speakers(folder / "train", 3)
    (folder / "test").mkdir()
    return "holds no recording"


def one_speaker(folder: Path) -> str:
    speakers(folder, 1)
    return "1 speakers"


def damaged(folder: Path) -> str:
    path = write(speakers(folder, 3) / "s00" / "0.wav", riff(noise(30))[:-3])
    return str(path)


@pytest.mark.parametrize("make", [no_test, no_recording, one_speaker, damaged])
def test_what_is_wrong_with_a_folder(make, tmp_path):
    part = make(tmp_path)
    with pytest.raises(InputError) as refused:
        load(tmp_path, frame=FRAME)
    assert_one_sentence(refused.value, part)


@pytest.mark.parametrize("setting", [{"frame": 0}, {"rate": -1}])
def test_impossible_settings(setting, tmp_path):
    with pytest.raises(InputError) as refused:
        load(speakers(tmp_path, 3), **setting)
    assert_one_sentence(refused.value, "samples were asked for")
