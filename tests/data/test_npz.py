"""The package's own format."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fivo.data import SPLITS, Column, Dataset, Music, Scaling, Speech, load, save_npz
from fivo.errors import InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "music.npz"


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """What a user would write with numpy alone."""
    rng = np.random.default_rng(1)
    written = {}
    for split in SPLITS:
        written[split] = rng.integers(0, 2, (6, 88))
        written[f"{split}_lengths"] = np.array([4, 2])
    return written


def test_a_pianoroll_survives(tiny, path):
    save_npz(tiny, path)
    read = load(path)
    assert read.fingerprint == tiny.fingerprint
    assert (read.sound, read.kind) == (Music(2.0, 0.25), "pianoroll")
    assert read.name == "music"


def test_a_waveform_survives(path):
    rng = np.random.default_rng(0)
    frames = {split: tuple(rng.normal(size=(n, 200)).astype(np.float32) for n in (3, 8)) for split in SPLITS}
    dataset = Dataset.waveform("speech", frames, 0.0125, Scaling(0.1, 548.1))
    save_npz(dataset, path)
    read = load(path)
    assert read.fingerprint == dataset.fingerprint
    assert (read.kind, read.dimension) == ("waveform", 200)
    assert read.sound == Speech(200, 0.0125, Scaling(0.1, 548.1))
    assert (read.sound.sample_rate, read.columns[7]) == (16_000, Column("sample", "real", 0.1, 548.1))
    np.testing.assert_allclose(read.train_mean, np.concatenate(frames["train"]).mean(axis=0), atol=1e-6)


def test_equal_content_gives_equal_bytes(tiny, tmp_path: Path):
    save_npz(tiny, tmp_path / "a.npz")
    save_npz(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_what_numpy_writes_is_read(arrays, path):
    np.savez_compressed(path, **arrays, steps_per_quarter=4)
    dataset = load(path)
    assert dataset.sound.steps_per_quarter == 4
    assert dataset.counts == dict.fromkeys(SPLITS, (2, 6))
    np.testing.assert_array_equal(dataset.splits["test"][1], arrays["test"][4:])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"train": None}, "has no array train"),
        ({"extra": np.zeros(3)}, "has an unknown array 'extra'"),
        ({"train_lengths": np.array([4, 3])}, "train has 6 frames, but its lengths sum to 7"),
        ({"train_lengths": np.array([6, 0])}, "train sequence 1 is empty"),
        ({"train_lengths": np.array([4.0, 2.0])}, "float64 lengths"),
        ({"train": np.zeros(6)}, r"train has shape \[6\]"),
        ({"train": np.full((6, 88), 3)}, "train sequence 0 has entries other than 0 and 1"),
        ({"train": np.zeros((6, 80))}, "train sequence 0 has 80 columns, but 88"),
        ({"kind": np.array("video")}, "the kind 'video' is unknown"),
        ({"kind": np.array("waveform")}, "without `step_seconds`"),
        ({"kind": np.array("waveform"), "step_seconds": np.array(0.1), "mean": np.array(0.1)}, "give both"),
        ({"kind": np.array([1, 2])}, "a single value is needed"),
        ({"steps_per_quarter": np.array(-1.0)}, "give a positive number"),
        ({"train": np.array([[{}] * 88] * 6)}, "not a readable .npz"),
    ],
)
def test_a_mistake_is_one_sentence(arrays, change, sentence, path):
    arrays.update(change)
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=sentence) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_waveform_that_is_not_finite_is_refused(path):
    frames = {split: np.full((2, 5), np.nan) for split in SPLITS}
    lengths = {f"{split}_lengths": np.array([2]) for split in SPLITS}
    np.savez(path, **frames, **lengths, kind="waveform", step_seconds=0.1)
    with pytest.raises(InputError, match="not finite"):
        load(path)


def test_a_step_that_contradicts_the_file_is_refused(tiny, path):
    save_npz(tiny, path)
    with pytest.raises(InputError, match=r"says that it has 2\.0 steps"):
        load(path, steps_per_quarter=4)


def test_every_beginning_of_a_file_is_refused(tiny, path):
    save_npz(tiny, path)
    content = path.read_bytes()
    for end in range(4, len(content), 97):
        path.write_bytes(content[:end])
        with pytest.raises(InputError, match=r"music\.npz"):
            load(path)


def members(content: bytes) -> bytes:
    """An archive in which every array that is needed is the given one."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for split in SPLITS:
            file.writestr(f"{split}.npy", content)
            file.writestr(f"{split}_lengths.npy", content)
    return archive.getvalue()


def test_an_array_that_comes_twice_is_refused(tiny, path):
    save_npz(tiny, path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("train.npy", b"")
    with pytest.raises(InputError, match="has an array twice"):
        load(path)


def test_a_shape_that_the_bytes_do_not_fill_is_refused(path):
    array = io.BytesIO()
    np.save(array, np.zeros((2, 88), np.uint8))
    path.write_bytes(members(array.getvalue().replace(b"(2, 88), }     ", b"(99999999, 88),}")))
    with pytest.raises(InputError, match="does not hold plain numbers of its shape"):
        load(path)


def test_a_small_file_does_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr("fivo.data.budget.MEMORY", 1 << 20)
    array = io.BytesIO()
    np.save(array, np.zeros((4_000, 88), np.uint8))
    path.write_bytes(members(array.getvalue()))
    with pytest.raises(InputError, match=r"music\.npz becomes more than 0\.00097.* GiB in memory; split it up"):
        load(path)
