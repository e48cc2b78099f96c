"""Heavy commands run with large pages, everything else in the process it was started in."""

import os
import subprocess
import sys

import pytest

from fivo.cli.pages import wanted_environment
from fivo.memory import KEEPING

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="large pages are asked for on Linux only")


def test_only_heavy_commands_start_anew():
    for heavy in ("fit", "train"):
        wanted = wanted_environment(["fivo", heavy, "--out", "x"], {"A": "b"})
        assert wanted == {"A": "b", "GLIBC_TUNABLES": KEEPING}
    for light in (["fivo"], ["fivo", "--help"], ["fivo", "data", "list"], ["fivo", "fit", "--help"]):
        assert wanted_environment(light, {}) is None
    assert wanted_environment(["fivo", "fit"], {"GLIBC_TUNABLES": "glibc.malloc.check=3"}) is None


def test_the_command_that_starts_anew_is_the_same():
    """Its mistake is still one sentence and exit code 2, and the process keeps its number."""
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    command = [sys.executable, "-X", "importtime", "-m", "fivo", "evaluate", "nowhere", "--particles", "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("fivo: ")]
    # Options of the interpreter are kept: the start of both processes was timed.
    assert done.stderr.count("| site\n") == 2
