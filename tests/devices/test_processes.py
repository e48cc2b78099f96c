"""Two processes on loopback give the numbers of one; one that is killed ends the other with a sentence."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import fivo
from fivo.data import Dataset
from tests.devices import own64
from tests.devices.test_devices import ROOT, flags
from tests.music import options

LOST = "fivo: another process has ended or cannot be reached; run the same command on every host to resume.\n"


def started(arguments: list[object], number: int, port: int, **variables: object) -> subprocess.Popen:
    words = [*arguments, "--coordinator", f"127.0.0.1:{port}", "--num-processes", 2, "--process-id", number]
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.devices.as_process", *map(str, words)],
        env={**os.environ, "XLA_FLAGS": flags(1), "PYTHONPATH": os.pathsep.join(paths)}
        | {name: str(value) for name, value in variables.items()},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def both(*arguments: object, others: tuple[object, ...] = (), **variables: object) -> list[tuple[int, str, str]]:
    """What two processes return, print and complain about; the second may have further arguments and variables."""
    port = free_port()
    pair = [started(list(arguments), 0, port), started([*arguments, *others], 1, port, **variables)]
    try:
        said = [process.communicate(timeout=300) for process in pair]
        return [(process.returncode, *texts) for process, texts in zip(pair, said, strict=True)]
    finally:
        for process in pair:
            process.kill()


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.from_arrays(own64.sequences(), valid=own64.sequences(3), test=own64.sequences(5))


@pytest.fixture(scope="module")
def data(dataset, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "walks.npz"
    arrays = {
        f"{name}_{i}": x
        for name, split in (("train", 8), ("valid", 3), ("test", 5))
        for i, x in enumerate(own64.sequences(split))
    }
    np.savez(path, **arrays)
    return path


def test_killed_and_resumed(dataset, data, tmp_path):
    given = [data, "--model", "tests.devices.own64:make", *options(own64.SETTINGS)]
    fit = ["fit", *given, "--out", tmp_path / "run"]
    (code, _, complaint), (killed, _, _) = both(*fit, DIE_AT=13)
    assert (code, killed) == (3, -9)
    assert complaint.endswith(LOST)
    assert "Traceback" not in complaint
    assert [code for code, _, _ in both(*fit)] == [0, 0]
    (code, printed, _), (_, nothing, _) = both(
        "evaluate", tmp_path / "run", "--model", given[2], "--repeats", 1, "--json", "--bounds", "fivo", "--sequences"
    )
    assert (code, nothing) == (0, "")
    with jax.enable_x64(True):
        one = fivo.fit(own64.make, data, progress=False, **own64.SETTINGS)
        two = fivo.open_run(tmp_path / "run", model=own64.make)
        for name in ("step", "bound", "validation", "gradient_norm"):
            np.testing.assert_allclose(two.history[name], one.history[name], rtol=1e-9)
        score = one.evaluate(repeats=1, bounds=["fivo"], per_sequence=True)
    np.testing.assert_allclose(
        json.loads(printed)["bounds"]["fivo"]["sequences"], score.bounds["fivo"].sequences, rtol=1e-9
    )


def test_processes_that_disagree(data, tmp_path):
    fit = ["fit", data, "--model", "tests.devices.own64:make", *options(own64.SETTINGS), "--out", tmp_path / "run"]
    for code, _, complaint in both(*fit, others=("--seed", 1)):
        assert code == 2
        assert complaint.endswith(
            "fivo: all processes must have the same settings and data, but process 1 has other settings than process "
            "0; run the same command on every host.\n"
        )
    assert not (tmp_path / "run").exists()


def test_a_process_that_never_comes(data, tmp_path):
    process = started(["fit", data, "--out", tmp_path / "run", "--timeout", 0.5], 0, free_port())
    _, complaint = process.communicate(timeout=120)
    assert process.returncode == 2
    assert (
        "not all processes came within 0.5 seconds (this is process 0 of 2, the coordinator is 127.0.0.1:" in complaint
    )
    assert not (tmp_path / "run").exists()
