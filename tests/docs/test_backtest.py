"""The tables of forecasts on real series are those of `results/backtest.json`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "results" / "backtest.json").read_text())
PAGE = (ROOT / "docs" / "backtest.md").read_text()
SCORES = ("crps", "energy", "log_score", "mae", "rmse", "coverage80", "coverage95")


@pytest.mark.parametrize("name", RESULTS["datasets"])
def test_the_scores_on_the_page_are_those_of_the_file(name):
    for model, scores in RESULTS["datasets"][name]["scores"].items():
        cells = " | ".join(f"{scores[score]:.3g}" for score in SCORES)
        assert f"| {name} | {model} | {cells} |" in PAGE


def test_there_are_enough_datasets_and_models():
    assert len(RESULTS["datasets"]) >= 3
    for found in RESULTS["datasets"].values():
        assert {"linear-gaussian", "seasonal-naive", "statsmodels"} <= set(found["scores"])


def test_what_is_said_of_the_diagnosis_is_in_the_file():
    found = {name: result["diagnosis"] for name, result in RESULTS["datasets"].items()}
    sentence = found["sunspots"]["vrnn"][0]
    assert sentence.startswith("The model itself is the limit: with N = 16")
    assert "are 0.038 nats per step apart" in sentence
    assert "0.038 nats per step apart with 16 particles" in PAGE
    for name, share in (("co2", "23 %"), ("macrodata", "8 %")):
        limit, size = found[name]["vrnn"]
        assert limit.startswith("The proposal limits this model: with N = 16")
        assert size.startswith(f"The effective sample size is {share} of N")
        assert f"{share} (`{name}`)" in PAGE
