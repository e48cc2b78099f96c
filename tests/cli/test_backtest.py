"""`fivo backtest`: a table for people, JSON for programs, a row for each window, a record in the run."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import polars as pl
import pytest

import fivo
from fivo.cli import main
from fivo.runs import Backtest, RunDirectory, check_run
from tests.sentences import assert_one_sentence

FIT = (
    "--id",
    "well",
    "--time",
    "t",
    "--inputs",
    "rain",
    "--split",
    "time",
    "--latents",
    "2",
    "--model",
    "linear-gaussian",
)
SHORT = ("--steps", "20", "--validate-every", "20", "--log-every", "20", "--fractions", "train=0.6,valid=0.1,test=0.3")
TEST = ("--windows", "2", "--horizon", "3", "--samples", "50", "--particles", "20")


def run(*arguments):
    main([str(argument) for argument in arguments])


def refused(capsys, *arguments):
    """The sentence of a command that ends with code 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def wells(steps: int = 40) -> pl.DataFrame:
    """Two series of daily depths that follow the rain."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(steps)
    parts = []
    for name in ("north", "south"):
        rain = rng.gamma(2.0, 1.0, steps)
        depth = 20 + np.cumsum(0.3 * (rain - 2) + 0.3 * rng.normal(size=steps)) + 0.2 * rng.normal(size=steps)
        parts.append(pl.DataFrame({"well": [name] * steps, "t": days, "depth": depth, "rain": rain}))
    return pl.concat(parts)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wells")
    wells().write_csv(folder / "wells.csv")
    run("fit", folder / "wells.csv", *FIT, *SHORT, "--out", folder / "run")
    return folder


def test_backtest(place, capsys):
    run("backtest", place / "run", *TEST, "--out", place / "windows.csv")
    printed = capsys.readouterr().out
    assert "season 7" in printed
    assert "seasonal-naive" in printed
    rows = pl.read_csv(place / "windows.csv")
    assert rows.columns == ["model", "series", "origin", "crps", "energy", "log_score", "mae", "crps_depth"]
    assert rows.height == 2 * 2 * 2
    # 12 of 40 rows are for test: the first window begins with them, the last one ends with them.
    assert rows["origin"].to_list()[:2] == ["2024-01-28", "2024-02-06"]
    kept = RunDirectory(place / "run").read(Backtest)
    assert list(kept.models) == ["linear-gaussian", "seasonal-naive"]
    assert kept.models["linear-gaussian"].columns["depth"].crps == pytest.approx(
        rows.filter(pl.col("model") == "linear-gaussian")["crps_depth"].mean()
    )
    assert {s.file: s.status for s in check_run(place / "run")}["backtest.json"] == "good"


def test_backtest_as_json_on_another_table(place, capsys):
    run("backtest", place / "run", *TEST, "--season", "3", "--json")
    before = json.loads(capsys.readouterr().out)
    assert before["season"] == 3
    wells().write_parquet(place / "later.parquet")
    run("backtest", place / "run", *TEST, "--table", place / "later.parquet", "--season", "3", "--json")
    found = json.loads(capsys.readouterr().out)
    # The rows that trained and validated the run are context there too, so that the windows are the same.
    assert [w["origin"] for w in found["each"]] == [w["origin"] for w in before["each"]]
    own = found["models"]["linear-gaussian"]
    assert own["crps"] == pytest.approx(before["models"]["linear-gaussian"]["crps"])


class Walk(fivo.models.SequenceModel):
    """A level that walks at random, seen through noise."""

    scale: jax.Array
    markov = True

    def initial_prior(self, state, context):
        return dist.Normal(jnp.zeros(1), jnp.ones(1)).to_event(1)

    def prior(self, state, context):
        return dist.Normal(state, jnp.exp(self.scale)).to_event(1)

    def emission(self, state, latent, context):
        return dist.Normal(latent, 0.3).to_event(1)

    def advance(self, state, latent, history):
        return latent


def test_a_linear_gaussian_model_is_fitted_beside_others(tmp_path):
    short = {"steps": 2, "validate_every": 2, "log_every": 2}
    data = fivo.Dataset.from_table(
        wells().drop("rain"), id="well", time="t", fractions={"train": 0.6, "valid": 0.1, "test": 0.3}
    )
    trained = fivo.fit(Walk(jnp.zeros(1)), data, out=tmp_path / "run", progress=False, **short)

    def companion(dataset, directory):
        return fivo.fit("linear-gaussian", dataset, latents=1, out=directory, progress=False, **short)

    found = trained.backtest(windows=2, horizon=3, num_samples=20, num_particles=8, fit_companion=companion)
    assert list(found.models) == ["own model", "seasonal-naive", "linear-gaussian"]
    assert (tmp_path / "run" / "backtest" / "linear-gaussian" / "result.json").exists()
    assert all(np.isfinite(scores.log_score) for scores in found.models.values())
    assert [window.origin for window in found.each[:2]] == ["27", "36"]  # a dataset keeps no times


def test_what_is_refused(place, capsys, tmp_path):
    out = tmp_path / "windows.csv"
    sentence = refused(capsys, "backtest", place / "run", "--windows", "5", "--horizon", "24", "--out", out)
    assert_one_sentence(sentence, "5 windows of 24 rows need at least 28 rows", "there are 12 of 'north'")
    assert_one_sentence(refused(capsys, "backtest", place / "run", *TEST, "--season", "0"), "season", "0")
    assert_one_sentence(refused(capsys, "backtest", place / "run", *TEST[:4], "--samples", "1"), "at least 2", "1")
    assert_one_sentence(refused(capsys, "backtest", place / "run", *TEST, "--out", tmp_path / "windows.txt"), ".txt")
    assert not out.exists()
