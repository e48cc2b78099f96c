"""The demonstration of tables: its commands on its own tables, with a model that has hardly been trained."""

import numpy as np
import polars as pl
import pytest

from fivo.cli.demo_tables import RATE, demo_tables, usual_alarms
from fivo.report import read_sources, report_page


def test_forecast_gaps_and_alarms(tmp_path, capsys):
    demo_tables(tmp_path, 2, 0)
    shown = " ".join(capsys.readouterr().out.split())
    assert "Alarms beside the truth" in shown
    assert "are usual." in shown
    for name in ("forecast", "imputed", "alarms"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert (tmp_path / "run" / {"alarms": "anomaly.json"}.get(name, f"{name}.json")).exists()
    page = report_page(read_sources([tmp_path / "run"]))
    for heading in ("Forecast", "Filled gaps", "Alarms"):
        assert f"<h2>{heading}: new.csv</h2>" in page
    new, filled, alarms = (pl.read_csv(tmp_path / f"{name}.csv") for name in ("new", "imputed", "alarms"))
    assert pl.read_csv(tmp_path / "forecast.csv").height == 3 * 48
    assert new["load"].null_count() > 14
    assert filled["load"].null_count() == 0
    found = new.with_columns(alarm=alarms["alarm"] == 1.0).filter(pl.col("event").is_not_null())
    hit = found.group_by("event").agg(pl.col("alarm").max())
    assert hit.filter("alarm").height >= 3, hit  # of four events


@pytest.mark.parametrize("hours", [100, 400])
def test_how_many_false_alarms_are_usual(hours):
    """Beside simulation: uniform scores, a threshold from 490 of them, alarms of others."""
    rng = np.random.default_rng(0)
    threshold = np.sort(rng.random((4000, 490)), axis=1)[:, int(RATE * 491) - 1]
    alarms = rng.binomial(hours, threshold)
    low, high = usual_alarms(hours, 490)
    assert (alarms < low).mean() <= 0.025 + 3 * np.sqrt(0.025 / 4000)
    assert (alarms > high).mean() <= 0.025 + 3 * np.sqrt(0.025 / 4000)
    assert (alarms >= high).mean() > 0.025 - 3 * np.sqrt(0.025 / 4000)
