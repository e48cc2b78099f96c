"""The table of `docs/objectives.md`: Lemma 1 and Proposition 1 (c) where both sides are known."""

import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "tables" / "inverse_moment.py"))


@pytest.fixture(scope="module")
def rows():
    """Two rows of the table, from a fifth of its runs."""
    return {n: SCRIPT["measure"](n, 40_000) for n in (4, 16)}


def test_the_inverse_moment_is_bounded_and_the_gap_predicted(rows):
    """What is left of the gap after half the variance is of the order of 1/N²."""
    bound, p = SCRIPT["lemma_bound"](), SCRIPT["RATE"] / (SCRIPT["RATE"] + 1)
    for n, row in rows.items():
        assert 1 / p - 4 * row.inverse_error < row.inverse < bound
        assert abs(row.gap - row.predicted) < 4 * row.gap_error + 0.1 / n**2


def test_the_page_shows_what_the_script_measures(rows):
    page = (ROOT / "docs" / "objectives.md").read_text()
    table = [line.split("|") for line in page.splitlines() if line.startswith("|") and "≤" in line]
    published = {int(cells[1]): cells for cells in table}
    assert set(published) == set(SCRIPT["NUM_PARTICLES"])
    for n, row in rows.items():
        cells = published[n]
        assert np.isclose(float(cells[4]), row.predicted, atol=1e-6)
        assert abs(float(cells[2].split("±")[0]) - row.inverse) < 5 * row.inverse_error
        assert abs(float(cells[5].split("±")[0]) - row.gap) < 5 * row.gap_error
