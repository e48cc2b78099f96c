"""The figures of the released code's weights in docs/results.md are those of results/released.json."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.released import BOUNDS, as_markdown

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "results" / "released.json").read_text())
PAGE = (ROOT / "docs" / "results.md").read_text()
SECTION = PAGE.partition("## The authors' released code\n")[2].partition("\n## ")[0]


def test_all_checkpoints_were_measured():
    measured = [(row["dataset"], row["bound"]) for row in RESULTS["checkpoints"]]
    assert measured == [(name, bound) for name in ("jsb", "nottingham", "piano-midi") for bound in BOUNDS]
    assert [row["dataset"] for row in RESULTS["checkpoints"] if "moments" in row] == ["jsb"] * 3
    assert re.fullmatch("[0-9a-f]{40}", RESULTS["commit"])
    assert RESULTS["command"] in SECTION


@pytest.mark.parametrize("table", as_markdown(RESULTS).split("\n\n"), ids=["bounds", "moments"])
def test_the_tables_are_those_of_the_file(table):
    assert table in SECTION


def test_ours_at_the_same_rate_is_that_of_table_5():
    cells = json.loads((ROOT / "results" / "table5.json").read_text())["cells"]
    keys = {"dataset": "jsb", "smoothing": False, "split": "test"}
    ours = {cell["keys"]["bound"]: cell["ours"] for cell in cells if keys.items() <= cell["keys"].items()}
    assert " / ".join(f"{ours[bound]:.3f}" for bound in BOUNDS) in SECTION
