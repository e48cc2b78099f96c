"""What several tests of the data package share."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest

from fivo.data import Dataset
from fivo.data.registry import KNOWN, KnownDataset
from tests.data.files import original_pickle

SHARED = Path(__file__).parents[3] / "shared" / "data" / "pianoroll"


@pytest.fixture
def pianoroll_files() -> Path:
    """The original files of the four music sets, which are not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the original music files are not beside the checkout (../shared/data/pianoroll)")
    return SHARED


@pytest.fixture(autouse=True)
def no_user_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's cache nor the environment decides what a test finds."""
    monkeypatch.delenv("FIVO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny() -> Dataset:
    """Six random sequences."""
    rng = np.random.default_rng(0)
    lengths = {"train": (5, 3, 9), "valid": (4,), "test": (2, 7)}
    rolls = {split: [(rng.random((n, 88)) < 0.05).astype(np.uint8) for n in sizes] for split, sizes in lengths.items()}
    return Dataset.pianoroll("tiny", rolls, 2)


@pytest.fixture
def known_tiny(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> KnownDataset:
    """A small set in the registry."""
    content = original_pickle(tiny)
    entry = dataclasses.replace(
        KNOWN["nottingham"],
        name="tiny",
        counts=tiny.counts,
        fingerprint=tiny.fingerprint,
        pickle_names=("Tiny Music.pickle", "tiny_music.pickle"),
        pickle_sha256=hashlib.sha256(content).hexdigest(),
        pickle_bytes=len(content),
        matlab_name="Tiny.mat",
    )
    monkeypatch.setitem(KNOWN, "tiny", entry)
    return entry
