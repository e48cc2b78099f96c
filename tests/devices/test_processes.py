"""Two processes on loopback give the numbers of one; one that is killed ends the other with a sentence."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

import fivo
from fivo.data import Dataset, save_npz
from tests.devices import own64
from tests.devices.as_process import THEN
from tests.devices.test_devices import ROOT, flags
from tests.music import options

DISAGREE = (
    "fivo: all processes must have the same settings and data, but process 1 has other {} than process 0; run the same "
    "command on every host.\n"
)
LOST = "fivo: another process has ended or cannot be reached; run the same command on every host to resume.\n"


def started(commands: list[list[object]], number: int, port: int, **variables: object) -> subprocess.Popen:
    joining = ["--coordinator", f"127.0.0.1:{port}", "--num-processes", 2, "--process-id", number]
    words = [word for command in commands for word in (THEN, *command, *joining)][1:]
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.devices.as_process", *map(str, words)],
        env={**os.environ, "XLA_FLAGS": flags(1), "PYTHONPATH": os.pathsep.join(paths), "JAX_ENABLE_X64": "1"}
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


def both(first: list[list[object]], second: list[list[object]], **variables: object) -> list[tuple[int, str, str]]:
    """What two processes return, print and complain about; the second has the variables."""
    port = free_port()
    pair = [started(first, 0, port), started(second, 1, port, **variables)]
    try:
        said = [process.communicate(timeout=300) for process in pair]
        return [(process.returncode, *texts) for process, texts in zip(pair, said, strict=True)]
    finally:
        for process in pair:
            process.kill()


def walks(path: Path) -> Path:
    dataset = Dataset.from_arrays(own64.sequences(), valid=own64.sequences(3), test=own64.sequences(5))
    save_npz(dataset, path)
    return path


def test_two_processes(tmp_path):
    data, run, own = walks(tmp_path / "walks.npz"), tmp_path / "run", "tests.devices.own64:make"
    fit = ["fit", data, "--model", own, *options(own64.SETTINGS), "--out", run]
    of_host = ["fit", "tests.devices.own64:data", *fit[2:]]
    (code, _, complaint), (killed, _, other) = both(
        [fit, of_host, fit], [[*fit, "--seed", 1], of_host, fit], DIE_AT=13, OTHER_DATA=1
    )
    assert (code, killed) == (3, -9)
    for differing in ("settings", "data"):
        assert DISAGREE.format(differing) in complaint
        assert DISAGREE.format(differing) in other
    assert complaint.endswith(LOST)
    assert "Traceback" not in complaint

    evaluate = ["evaluate", run, "--model", own, "--repeats", 1, "--bounds", "fivo", "--json", "--sequences"]
    (code, printed, complaint), (other, nothing, _) = both([fit, evaluate], [fit, evaluate])
    assert (code, other, nothing) == (0, 0, ""), complaint
    with jax.enable_x64(True):
        one = fivo.fit(own64.make, data, progress=False, **own64.SETTINGS)
        two = fivo.open_run(run, model=own64.make)
        for name in ("step", "bound", "validation", "gradient_norm"):
            np.testing.assert_allclose(two.history[name], one.history[name], rtol=1e-9)
        expected = one.evaluate(repeats=1, bounds=["fivo"], per_sequence=True).bounds["fivo"].sequences
    found = json.loads(printed.splitlines()[-1])["bounds"]["fivo"]["sequences"]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_process_that_never_comes(tmp_path):
    out = tmp_path / "run"
    process = started([["fit", "--out", out, "--timeout", 0.5]], 0, free_port())
    _, complaint = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "not all processes came within 0.5 seconds (this is process 0 of 2, the coordinator is" in complaint
    assert not out.exists()
