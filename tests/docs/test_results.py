"""The results in the documents are those of the files under `results/`."""

import json
from pathlib import Path

from fivo.report import as_markdown

ROOT = Path(__file__).parents[2]


def summary(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_the_table_of_the_readme_is_that_of_its_file():
    table = [line for line in as_markdown(summary("table1")).splitlines() if line.startswith("|")]
    assert len(table) == 2 + 9
    assert "\n".join(table) in (ROOT / "README.md").read_text()


def test_the_scores_of_smoothing_models_are_those_of_their_file():
    scores = [cell["ours"] for cell in summary("table5")["cells"] if cell["ours"] is not None]
    assert len(scores) == 4
    page = (ROOT / "docs" / "sweeps.md").read_text()
    assert [score for score in scores if f"{score:.3f}" not in page] == []
