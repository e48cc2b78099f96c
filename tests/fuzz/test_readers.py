"""Every reader of data, given damaged files: one sentence or a dataset, in bounded time and memory, nothing executed.

`FIVO_FUZZ_CASES=10000` tries that many for each reader, `FIVO_FUZZ_SEED` others than usual.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CASES = int(os.environ.get("FIVO_FUZZ_CASES", "200"))
SEED = int(os.environ.get("FIVO_FUZZ_SEED", "0"))
ROOT = Path(__file__).parents[2]
MEMORY = 64 << 20
"""A budget that is quickly exceeded."""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured through /proc, which is not here"
)
@pytest.mark.parametrize("reader", TARGETS)
def test_damaged_files(reader):
    if reader == "flac":
        pytest.importorskip("soundfile")
    if reader in ("csv", "parquet", "arrow"):
        pytest.importorskip("polars")
    command = [sys.executable, "-W", "error", "-m", "tests.fuzz.run", reader]
    command += ["--cases", str(CASES), "--seed", str(SEED), "--memory", str(MEMORY)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    result = json.loads(ran.stdout)
    assert not result["findings"], "\n".join(result["findings"])
    assert result["cases"] == CASES
