"""The results in the documents are those of the files under `results/`."""

import json
import runpy
from pathlib import Path

import pytest

from fivo.report import as_markdown

ROOT = Path(__file__).parents[2]


def summary(name: str) -> dict:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def table(name: str) -> str:
    return "\n".join(line for line in as_markdown(summary(name)).splitlines() if line.startswith("|"))


@pytest.mark.parametrize(
    ("name", "scores"),
    [("table1", 18), ("tuned", 6), ("weight-decay", 16), ("table5", 12)],
)
def test_the_tables_in_documents_are_those_of_their_files(name, scores):
    assert sum(cell["ours"] is not None for cell in summary(name)["cells"]) == scores
    assert table(name) in (ROOT / "docs" / "results.md").read_text()


def test_the_headline_is_that_of_the_files():
    headline = runpy.run_path(str(ROOT / "docs" / "tables" / "headline.py"))["as_markdown"]()
    assert headline.count("\n") == 5
    readme = (ROOT / "README.md").read_text()
    assert headline in readme
    keys = {"dataset": "jsb", "particles": 8, "bound": "fivo"}
    (cell,) = (cell for cell in summary("tuned")["cells"] if keys.items() <= cell["keys"].items())
    assert f"with N = 8 too: {cell['ours']:.2f}, where it has {cell['published']:.2f}" in readme


def test_seeds_of_the_tuned_recipe_in_the_documents_are_those_of_their_file():
    text = (ROOT / "docs" / "results.md").read_text()
    for cell in summary("tuned")["cells"]:
        values = [f"{run['value']:.3f}" for run in cell["selected"]]
        assert not values or f"{', '.join(values[:-1])} and {values[-1]}".removeprefix(" and ") in text


def test_the_lines_of_figure_2_in_the_documents_are_those_of_their_file():
    text = (ROOT / "docs" / "results.md").read_text()
    (panel,) = summary("figure2-right")["figure"]
    assert [line["label"] for line in panel["lines"]] == ["elbo", "iwae", "fivo"]
    for line in panel["lines"]:
        values = [y for x, y in zip(line["x"], line["y"], strict=True) if x in (1000, 5000, 10_000, 15_000, 20_000)]
        assert f"| {line['label'].upper()} | {' | '.join(f'{value:.3f}' for value in values)} |" in text
