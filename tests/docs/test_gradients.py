"""The tables of `docs/gradients.md`, made in small."""

import runpy
from pathlib import Path

import jax
import numpy as np

from fivo._scoring import device_batch
from fivo.bounds import FIVO
from fivo.gradients import Pathwise, ResamplingScore
from fivo.models import VRNN, BernoulliEmission
from fivo.resampling import Always

DOCS = Path(__file__).parents[2] / "docs"
TABLE = runpy.run_path(str(DOCS / "tables" / "gradients.py"))
VARIANCE = runpy.run_path(str(DOCS / "tables" / "gradient_variance.py"))


def published() -> dict[str, tuple[float, float, float, float]]:
    """Means and errors of the page's first table."""
    rows = {}
    for line in (DOCS / "gradients.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and "±" in cells[1]:
            rows[cells[0]] = tuple(float(part) for cell in (cells[1], cells[3]) for part in cell.split("±"))
    return rows


def test_the_page_shows_what_the_script_measures():
    rows, estimators = published(), TABLE["estimators"]()
    assert rows.keys() == estimators.keys()
    for name in ("pathwise", "stop-gradient", "transport resampling"):
        row = TABLE["measure"](name, estimators[name], 500)
        drift, drift_error, pull, pull_error = rows[name]
        assert abs(row.drift - drift) < 4.5 * np.hypot(row.drift_error, drift_error)
        assert abs(row.pull - pull) < 4.5 * np.hypot(row.pull_error, pull_error)


def test_what_the_page_says_of_biases():
    """From the published numbers: unbiased estimators agree, the others differ from them."""
    rows = published()
    means = {name: np.array([row[0], row[2]]) for name, row in rows.items()}
    errors = {name: np.array([row[1], row[3]]) for name, row in rows.items()}

    def off(name: str, other: str) -> np.ndarray:
        return np.abs(means[name] - means[other]) / np.hypot(errors[name], errors[other])

    truth = "resampling-score, filters"
    for name in rows:
        if "score" in name:
            assert (off(name, truth) < 4).all(), name
    assert off("pathwise", truth).max() > 5
    assert (off("doubly-reparameterized", "pathwise") < 4).all()
    assert off("sticking-the-landing", "pathwise").max() > 5
    for name in ("soft resampling", "relaxed resampling", "transport resampling"):
        assert off(name, truth).max() > 5, name


def test_the_resampling_term_adds_noise():
    rng = np.random.default_rng(0)
    rolls = [(rng.random((20, 6)) < 0.4).astype(np.float32) for _ in range(2)]
    model = VRNN(BernoulliEmission(np.full(6, 0.4, np.float32)), 3, key=jax.random.key(0))
    batch = device_batch(rolls, np.arange(2), 20)
    spread = {
        g: VARIANCE["spread"](model, FIVO(2, criterion=Always(), gradient=g), batch, 10).variance
        for g in (Pathwise(), ResamplingScore())
    }
    assert spread[ResamplingScore()] > spread[Pathwise()] > 0
