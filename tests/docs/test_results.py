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
    ("name", "document", "scores"),
    [("table1", "README.md", 18), ("weight-decay", "docs/results.md", 16), ("table5", "docs/results.md", 12)],
)
def test_the_tables_in_documents_are_those_of_their_files(name, document, scores):
    assert sum(cell["ours"] is not None for cell in summary(name)["cells"]) == scores
    assert table(name) in (ROOT / document).read_text()


def test_the_scores_with_weight_decay_in_the_readme_are_those_of_their_file():
    keys = {"weight_decay": 0.3, "bound": "fivo"}
    scores = [cell["ours"] for cell in summary("weight-decay")["cells"] if keys.items() <= cell["keys"].items()]
    assert len(scores) == 3
    readme = (ROOT / "README.md").read_text()
    assert [score for score in scores if f"{score:.3f}" not in readme] == []


def test_the_lines_of_figure_2_in_the_documents_are_those_of_their_file():
    text = (ROOT / "docs" / "results.md").read_text()
    (panel,) = summary("figure2-right")["figure"]
    assert [line["label"] for line in panel["lines"]] == ["elbo", "iwae", "fivo"]
    for line in panel["lines"]:
        values = [y for x, y in zip(line["x"], line["y"], strict=True) if x in (1000, 5000, 10_000, 15_000, 20_000)]
        assert f"| {line['label'].upper()} | {' | '.join(f'{value:.3f}' for value in values)} |" in text
