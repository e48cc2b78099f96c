"""The .mat files of known sets are read as scipy writes them; all others are refused unread."""

import dataclasses
import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from fivo.data import SPLITS, Dataset, load
from fivo.data.registry import KNOWN
from fivo.errors import InputError
from tests.data.measured import measured
from tests.sentences import assert_one_sentence

VARIABLES = {"train": "traindata", "valid": "validdata", "test": "testdata"}


def cells(sequences) -> np.ndarray:
    array = np.empty((1, len(sequences)), dtype=object)
    for index, sequence in enumerate(sequences):
        array[0, index] = sequence
    return array


def matlab(dataset: Dataset, compress: bool = True) -> bytes:
    content = io.BytesIO()
    variables = {variable: cells(dataset.splits[split]) for split, variable in VARIABLES.items()}
    scipy.io.savemat(content, variables, do_compression=compress)
    return content.getvalue()


@pytest.fixture(params=[True, False], ids=["compressed", "plain"])
def known_mat(request, tiny, known_tiny, monkeypatch, tmp_path) -> Path:
    """The .mat file of a small set in the registry."""
    content = matlab(tiny, request.param)
    entry = dataclasses.replace(known_tiny, matlab_sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(KNOWN, "tiny", entry)
    path = tmp_path / entry.matlab_name
    path.write_bytes(content)
    return path


def test_a_known_file_is_read_by_its_name_and_by_its_path(known_mat, tiny):
    assert load("tiny", data_dir=known_mat.parent).fingerprint == tiny.fingerprint
    assert load(known_mat).fingerprint == tiny.fingerprint


@pytest.mark.parametrize("name", ["JSB_Chorales", "Piano_midi"])
def test_original_files_are_read_as_scipy_reads_them(name, pianoroll_files):
    path = pianoroll_files / "mat" / f"{name}.mat"
    expected = scipy.io.loadmat(path)
    dataset = load(path)
    for split in SPLITS:
        sequences = expected[VARIABLES[split]][0]
        assert len(dataset.splits[split]) == len(sequences)
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(dataset.splits[split], sequences, strict=True))


def test_any_other_file_is_refused_before_scipy_sees_it(known_mat, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    good = known_mat.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    other = matlab(dataclasses.replace(tiny, splits={**tiny.splits, "test": tiny.splits["train"]}))
    for content in (good[:-1], good[:200], bytes(flipped), other, b"MATLAB 7.3 MAT-file".ljust(200)):
        known_mat.write_bytes(content)
        with pytest.raises(InputError) as refused:
            load(known_mat)
        assert_one_sentence(refused.value, "Tiny.mat", "jsb", ".npz")
        with pytest.raises(InputError) as refused:
            load("tiny", data_dir=known_mat.parent)
        assert_one_sentence(refused.value, "not the known file")


def test_what_a_known_file_becomes_is_counted(pianoroll_files):
    largest = pianoroll_files / "mat" / "MuseData.mat"
    [refused] = measured(largest, memory=64 << 20)
    assert_one_sentence(refused.sentence, "MuseData.mat", "in memory")
    need = 104 << 20
    [read] = measured(largest, memory=need)
    assert read.sentence == ""
    assert read.peak < need + (48 << 20)  # of which scipy's own code is 30 MB
