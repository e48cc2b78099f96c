"""The peers' own environment: made once in build/peers-venv, or given by FIVO_PEERS_PYTHON."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.harness.worker import ROOT

REQUIREMENTS = ROOT / "benchmarks" / "requirements-peers.txt"
# Its metadata still ask for an older NumPy than it runs with; what it needs is in the requirements.
WITHOUT_DEPENDENCIES = "particles==0.4"


class NoPeersError(Exception):
    """The environment cannot be made; the message says why."""


def peers_python() -> str:
    """The interpreter of the peers' environment, which is made if need be."""
    given = os.environ.get("FIVO_PEERS_PYTHON")
    if given:
        if not Path(given).exists():
            raise NoPeersError(f"FIVO_PEERS_PYTHON is {given!r}, which does not exist")
        return given
    directory = ROOT / "build" / "peers-venv"
    python, stamp = directory / "bin" / "python", directory / ".complete"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + WITHOUT_DEPENDENCIES.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        print("making the peers' environment in build/peers-venv (a few minutes, once)", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory)])
        if _install(python):
            stamp.write_text(wanted)
    return str(python)


def _install(python: Path) -> bool:
    """Install all peers; where that fails, as many as possible one by one. A missing one shows when it is imported."""
    try:
        _pip(python, "-r", str(REQUIREMENTS))
        _pip(python, "--no-deps", WITHOUT_DEPENDENCIES)
    except NoPeersError as error:
        print(f"  not all peers at once ({error}); one by one", file=sys.stderr, flush=True)
    else:
        return True
    lines = [line.split("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines()]
    installed = 0
    for arguments in [*([line] for line in lines if line), ["--no-deps", WITHOUT_DEPENDENCIES]]:
        try:
            _pip(python, *arguments)
            installed += 1
        except NoPeersError as error:
            print(f"  without {arguments[-1]}: {error}", file=sys.stderr, flush=True)
    if not installed:
        raise NoPeersError("pip could install none of benchmarks/requirements-peers.txt")
    return False


def _pip(python: Path, *arguments: str) -> None:
    # The outer pip serves both environments: a venv without ensurepip has none of its own.
    _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *arguments])


def _run(command: list[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        errors = [line for line in finished.stderr.strip().splitlines() if line.startswith("ERROR")]
        raise NoPeersError((errors or finished.stderr.strip().splitlines() or ["no message"])[-1])
