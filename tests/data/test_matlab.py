"""The reader of MATLAB files, against scipy's writer and reader."""

import contextlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from fivo.data import SPLITS, Dataset, load
from fivo.errors import InputError

VARIABLES = {"train": "traindata", "valid": "validdata", "test": "testdata"}


def cells(sequences, dtype=np.uint8) -> np.ndarray:
    array = np.empty((1, len(sequences)), dtype=object)
    for index, sequence in enumerate(sequences):
        array[0, index] = sequence.astype(dtype)
    return array


def matlab(dataset: Dataset, dtype=np.uint8, compress: bool = True) -> bytes:
    content = io.BytesIO()
    variables = {variable: cells(dataset.splits[split], dtype) for split, variable in VARIABLES.items()}
    scipy.io.savemat(content, variables, do_compression=compress)
    return content.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "music.mat"


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.float32, np.float64, np.bool_])
def test_what_scipy_writes_is_read(tiny, path, dtype, compress):
    path.write_bytes(matlab(tiny, dtype, compress))
    assert load(path).fingerprint == tiny.fingerprint


@pytest.mark.parametrize("name", ["JSB_Chorales", "Piano_midi"])
def test_original_files_are_read_as_scipy_reads_them(name, pianoroll_files):
    path = pianoroll_files / "mat" / f"{name}.mat"
    expected = scipy.io.loadmat(path)
    dataset = load(path)
    for split in SPLITS:
        sequences = expected[VARIABLES[split]][0]
        assert len(dataset.splits[split]) == len(sequences)
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(dataset.splits[split], sequences, strict=True))


@pytest.mark.parametrize("compress", [True, False])
def test_every_beginning_of_a_file_is_refused(tiny, path, compress):
    content = matlab(tiny, compress=compress)
    for end in range(1, len(content), 61):
        path.write_bytes(content[:end])
        with pytest.raises(InputError, match=r"music\.mat"):
            load(path)


def test_a_damaged_byte_never_escapes_as_another_error(tiny, path):
    content = matlab(tiny, compress=False)
    rng = np.random.default_rng(0)
    for position in rng.integers(128, min(len(content), 1500), 150):
        damaged = bytearray(content)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with contextlib.suppress(InputError):
            load(path)


def test_a_small_file_does_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr("fivo.data.budget.MEMORY", 1 << 20)
    bomb = zlib.compress(bytes(2 << 20))
    header = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    path.write_bytes(header + struct.pack("<II", 15, len(bomb)) + bomb)
    with pytest.raises(InputError, match="decompression bomb"):
        load(path)


def test_a_claim_of_many_cells_costs_nothing(tiny, path):
    content = matlab(tiny, compress=False)
    shape = struct.pack("<ii", 1, len(tiny.splits["train"]))
    path.write_bytes(content.replace(shape, struct.pack("<ii", 40000, 40000), 1))
    with pytest.raises(InputError, match="claims more cells than the file holds"):
        load(path)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"traindata": np.zeros((3, 88))}, "variable traindata is not a cell array"),
        ({"music": np.zeros((3, 88))}, "unexpected or repeated variable 'music'"),
        ({"traindata": cells([np.zeros((2, 88))])}, "has no variable validdata"),
        ({v: cells([np.zeros((2, 87))]) for v in VARIABLES.values()}, "train sequence 0 has 87 columns, but 88"),
        ({v: cells([np.full((2, 88), 2)]) for v in VARIABLES.values()}, "has entries other than 0 and 1"),
        ({v: cells([np.zeros((0, 88))]) for v in VARIABLES.values()}, "train sequence 0 is empty"),
        ({v: cells([np.zeros((1, 88), complex)], complex) for v in VARIABLES.values()}, "complex numbers"),
    ],
)
def test_other_content_is_one_sentence(variables, sentence, path):
    scipy.io.savemat(path, variables)
    with pytest.raises(InputError, match=sentence):
        load(path)


def test_another_version_is_named(path):
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(200))
    with pytest.raises(InputError, match="not a little-endian MATLAB v5 file"):
        load(path)
