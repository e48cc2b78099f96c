"""The table of `docs/twisting.md` is that of its results file, which says what was claimed."""

import json
from pathlib import Path

import pytest

from fivo.experiments import read_experiment
from fivo.report import as_markdown

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_figures_of_the_results():
    page = (ROOT / "docs" / "twisting.md").read_text()
    rows = json.loads((ROOT / "results" / "sixo-drift.json").read_text())["rows"]
    for row in rows:
        shown = f"{row['bound']:.4f} ± {row['standard_error']:.4f} | {row['best_evidence']:.4f} | {row['gap']:.4f}"
        assert f"| {row['objective']} | {row['drift']:.4f} | {shown} |" in page
    gaps = {row["objective"]: row["gap"] for row in rows}
    assert abs(gaps["SIXO-DRE"]) < 0.01 < min(gaps["FIVO"], gaps["FIVO, resampling score"])


def test_the_page_has_the_exact_likelihoods_of_the_currencies():
    page = (ROOT / "docs" / "twisting.md").read_text()
    exact = json.loads((ROOT / "results" / "forex-exact.json").read_text())
    sums, bootstrap = exact["sums"], exact["bootstrap"]
    for fitted, values in sums.items():
        earlier = values["test_from_a_month_earlier"]
        assert f"| {fitted} | {values['train']:,.2f} | {values['test']:,.2f} | {earlier:,.2f} |" in page
        assert abs(values["test"] - values["test_on_a_finer_grid"]) < 0.01
    published = [row["value"] for row in read_experiment("sixo-forex").document.published]
    assert sums["train"]["test"] + 44 < min(published) < max(published) < sums["train"]["test_from_a_month_earlier"]
    for mean, error in bootstrap.values():
        assert f"{mean:,.1f} ± {error:.1f}" in " ".join(page.split())
    fitted, error = bootstrap["test_from_a_month_earlier"]
    assert fitted - 5 < min(published) < max(published) < fitted - error
    for value in published:
        assert f"{value:,.2f}" in page


@pytest.mark.parametrize("name", ["sixo-forex", "sixo-hodgkin-huxley"])
def test_the_page_has_the_tables_of_the_sweeps(name):
    summary = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert all(cell["ours"] is not None for cell in summary["cells"])
    table = "\n".join(line for line in as_markdown(summary).splitlines() if line.startswith("|"))
    assert table in (ROOT / "docs" / "twisting.md").read_text()


def test_the_page_has_the_figures_of_the_chorales():
    page = " ".join((ROOT / "docs" / "twisting.md").read_text().split())
    found = json.loads((ROOT / "results" / "jsb-twist.json").read_text())
    for name, title, own in (("fivo", "FIVO", "FIVO"), ("sixo", "SIXO-DRE", "SIXO")):
        row = found[name]
        cells = [
            f"{row['steps']:,}",
            ", ".join(map(str, row["seconds"])),
            *(_pair(row[b], ", ") for b in (own, "FIVO")),
        ]
        assert f"| {title} | {' | '.join(cells)} |" in page
        assert _pair(row["validation after 11,000 steps, N = 4"], " and ") in page
    first, last = (found["sixo"][f"loss of the twist at step {step}"] for step in ("100", "11,000"))
    assert f"loss falls from {first[0]:.2f} to {last[0]:.2f} and {last[1]:.2f}" in page
    assert all(mine > theirs for mine, theirs in zip(found["fivo"]["FIVO"], found["sixo"]["FIVO"], strict=True))


def _pair(values, between):
    return between.join(f"{value:.3f}" for value in values)
