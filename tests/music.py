"""A tiny set of music and tiny runs on it, shared by the tests of training, evaluation and the commands."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fivo
from fivo import Run, _scoring
from fivo._run import prepare
from fivo.data import Dataset, save_npz
from fivo.runs import Result
from fivo.training import Plan, Watchers, train
from tests.fast import UNOPTIMISED
from tests.programs import SharingTrainer, adam_of_one_rule

SETTINGS = {
    "hidden": 8,
    "particles": 2,
    "batch_size": 2,
    "learning_rate": 0.02,
    "steps": 120,
    "validate_every": 40,
    "log_every": 20,
}
LENGTH = 6


def tiny_music(train: tuple[int, ...] = (LENGTH,) * 5, name: str = "tiny") -> Dataset:
    """Three chords in turn, now and then with a wrong note."""
    rng = np.random.default_rng(0)
    chords = np.zeros((3, 88), np.uint8)
    for row, notes in enumerate(((39, 43, 46), (41, 44, 48), (34, 43, 46))):
        chords[row, list(notes)] = 1

    def piece(length: int) -> np.ndarray:
        return chords[(np.arange(length) + rng.integers(3)) % 3] ^ (rng.random((length, 88)) < 0.003)

    lengths = {"train": train, "valid": (LENGTH,) * 2, "test": (LENGTH, LENGTH - 1, LENGTH - 2)}
    rolls = {split: [piece(n).astype(np.uint8) for n in sizes] for split, sizes in lengths.items()}
    return Dataset.pianoroll(name, rolls, 2)


def tiny_plan(music: Dataset, **changes: object) -> Plan:
    """What the tiny runs are made of, but for some settings."""
    return prepare(data=music, settings={**SETTINGS, **changes})


def train_tiny(
    directory: Path, music: Dataset, *, override: bool = False, watchers: Watchers | None = None, **changes: object
) -> Result:
    """Train a tiny run, or continue one."""
    return train(tiny_plan(music, **changes), directory, override=override, watchers=watchers)


def fivo_command(*arguments: object, cache: Path, check: bool = True) -> subprocess.CompletedProcess:
    """Run `fivo` in its own process."""
    done = subprocess.run(
        command_line(*arguments), env=environment(cache), capture_output=True, text=True, timeout=300, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "fivo", *map(str, arguments)]


def environment(cache: Path) -> dict[str, str]:
    """Programs compiled quickly and kept for the next process."""
    flags = " ".join(f"--{name}={str(value).lower()}" for name, value in UNOPTIMISED.items())
    return {**os.environ, "XLA_FLAGS": flags, "XDG_CACHE_HOME": str(cache)}


def options(settings: dict[str, object]) -> list[str]:
    """Settings as options of `fivo fit`."""
    return [str(part) for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled programs of all test processes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"


@pytest.fixture(scope="session", autouse=True)
def quickly_compiled(cache: Path) -> Iterator[None]:
    """Tiny programs: not worth optimising, worth keeping, and worth sharing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scoring, "CPU_OPTIONS", UNOPTIMISED)
        patch.setattr("fivo.training.session.Trainer", SharingTrainer)
        patch.setattr("fivo.training.plan.adam", adam_of_one_rule)
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield


@pytest.fixture(scope="session")
def music() -> Dataset:
    return tiny_music()


@pytest.fixture(scope="session")
def music_file(music: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("music") / "tiny.npz"
    save_npz(music, path)
    return path


@pytest.fixture(scope="session")
def fivo_run(music: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run trained to its end with FIVO."""
    return fivo.fit("vrnn", music, out=tmp_path_factory.mktemp("runs") / "fivo", progress=False, **SETTINGS)


@pytest.fixture(scope="session")
def elbo_run(music: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run trained to its end with the ELBO."""
    out = tmp_path_factory.mktemp("runs") / "elbo"
    return fivo.fit("vrnn", music, bound="elbo", out=out, progress=False, **SETTINGS)
