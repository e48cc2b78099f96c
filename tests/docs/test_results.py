"""The results in the documents are those of the files under `results/`."""

import json
from pathlib import Path

import pytest

from fivo.report import as_markdown

ROOT = Path(__file__).parents[2]


def summary(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def table(name: str) -> str:
    return "\n".join(line for line in as_markdown(summary(name)).splitlines() if line.startswith("|"))


@pytest.mark.parametrize(
    ("name", "document"),
    [("table1", "README.md"), ("weight-decay", "docs/sweeps.md"), ("table5", "docs/sweeps.md")],
)
def test_the_tables_in_documents_are_those_of_their_files(name, document):
    scored = [cell for cell in summary(name)["cells"] if cell["ours"] is not None]
    assert len(scored) >= 9
    assert table(name) in (ROOT / document).read_text()
