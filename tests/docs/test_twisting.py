"""The table of `docs/twisting.md` is that of its results file, which says what was claimed."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_figures_of_the_results():
    page = (ROOT / "docs" / "twisting.md").read_text()
    rows = json.loads((ROOT / "results" / "sixo-drift.json").read_text())["rows"]
    for row in rows:
        shown = f"{row['bound']:.4f} ± {row['standard_error']:.4f} | {row['best_evidence']:.4f} | {row['gap']:.4f}"
        assert f"| {row['objective']} | {row['drift']:.4f} | {shown} |" in page
    gaps = {row["objective"]: row["gap"] for row in rows}
    assert abs(gaps["SIXO-DRE"]) < 0.01 < min(gaps["FIVO"], gaps["FIVO, resampling score"])
