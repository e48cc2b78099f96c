"""The table of `docs/columns.md` is that of its results file, and says who is better."""

import json
from pathlib import Path

from benchmarks.columns import rows

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_of_the_results():
    page = (ROOT / "docs" / "columns.md").read_text()
    seeds = json.loads((ROOT / "results" / "columns.json").read_text())["seeds"]
    assert len(seeds) == 4
    for row in rows(seeds):
        assert f"| {' | '.join(row)} |" in page
        assert row[-1].startswith("+")
