"""The tables of `docs/tightness.md`, made in small: IWAE's variance grows exponentially with T, FIVO's linearly."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from fivo.bounds import IWAE
from tests.oracles.moments import DenseGaussian

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "tables" / "variance_growth.py"))
NUM_STEPS = SCRIPT["NUM_STEPS"]


@pytest.fixture(scope="module")
def growth():
    """The rows of the first table, from a tenth of its runs."""
    return SCRIPT["growth"](10 * max(NUM_STEPS), 50)


def test_the_exact_variance_of_iwae():
    """Against the Gaussian integral over whole trajectories, and against a sample where its variance is small."""
    batch = SCRIPT["beginnings"]()
    exact = SCRIPT["importance_variance"](batch)
    for row, num_steps in enumerate(NUM_STEPS):
        joint = DenseGaussian(SCRIPT["model"](), num_steps)
        second = joint.weight_moment(batch.observations[row, :num_steps], 2)
        np.testing.assert_allclose(1 + exact[row], second, rtol=1e-3)

    squares = np.expm1(SCRIPT["log_ratios"](IWAE(400), batch, 50)[:, 0]) ** 2
    error = squares.std(axis=1).mean() / np.sqrt(squares.size)
    assert abs(squares.mean() - exact.reshape(squares.shape[0], -1)[:, 0].mean() / 400) < 4 * error


def test_growth_with_the_length_of_a_sequence(growth):
    times, iwae, filtered, errors = (np.array(column) for column in zip(*growth[1:], strict=True))

    rates = np.diff(np.log(iwae)) / np.diff(times)
    assert (rates > 0.2).all()
    assert rates.max() < 1.3 * rates.min(), "the same exponential rate everywhere"

    powers = np.diff(np.log(filtered)) / np.diff(np.log(times))
    tolerance = 0.3 + 4 * np.hypot(errors[1:] / filtered[1:], errors[:-1] / filtered[:-1]) / np.diff(np.log(times))
    assert (np.abs(powers - 1) < tolerance).all(), "the first power of T"
    assert (filtered < iwae / 3).all()


def test_few_particles_spread_less_when_they_resample():
    for row in SCRIPT["spread"](16, 50):
        assert np.isfinite(row).all()
        assert row.fivo < 0.7 * row.iwae


def test_the_page_shows_what_the_script_measures(growth):
    """The published numbers of FIVO, seen again in a short run."""
    page = (Path(__file__).parents[2] / "docs" / "tightness.md").read_text()
    table = [line.split("|") for line in page.splitlines() if "±" in line]
    published = {int(cells[1]): (float(cells[2]), float(cells[3].split("±")[0])) for cells in table}
    for row in growth:
        iwae, filtered = published[row.num_steps]
        assert np.isclose(row.iwae, iwae, rtol=0.01)
        assert abs(row.fivo - filtered) < 5 * row.fivo_error
