"""The results in the README are those of the files under `results/`."""

import json
from pathlib import Path

from fivo.report import as_markdown

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_readme_is_that_of_its_file():
    summary = json.loads((ROOT / "results" / "table1.json").read_text())
    table = [line for line in as_markdown(summary).splitlines() if line.startswith("|")]
    assert len(table) == 2 + 9
    assert "\n".join(table) in (ROOT / "README.md").read_text()
