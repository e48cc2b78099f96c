"""The code in docs/data.md runs."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_every_block_runs(tmp_path: Path):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    assert all(language == "python" for language, _ in blocks)
    code = "\n".join(block for _, block in blocks)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "bach: 9.9% with 7 shapes" in ran.stdout
