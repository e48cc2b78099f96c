"""From a table to a fitted model, scores, states, forecasts, imputations and alarms, by commands."""

import json

import numpy as np
import polars as pl
import pytest

import fivo
from fivo.cli import main
from fivo.errors import InputError
from tests.sentences import assert_one_sentence

FIT = ("--id", "ship", "--time", "t", "--values", "lat,speed", "--inputs", "wind", "--model", "linear-gaussian")
SHORT = ("--latents", "2", "--steps", "60", "--validate-every", "30", "--log-every", "30")
SPLITS = ("--fractions", "train=0.5,valid=0.1,calibrate=0.3,test=0.1")


def run(*arguments):
    main([str(argument) for argument in arguments])


def refused(capsys, *arguments):
    """The sentence of a command that ends with code 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def ships(count: int = 24, steps: int = 14, seed: int = 0) -> pl.DataFrame:
    """Series that follow a wind, in degrees and knots, with holes."""
    rng = np.random.default_rng(seed)
    rows = []
    for ship in range(count):
        place = rng.normal()
        for t in range(steps):
            wind = np.sin(t / 3) + 0.2 * rng.normal()
            place = 0.9 * place + 0.3 * wind + 0.3 * rng.normal()
            rows.append((f"s{ship}", t, 50 + 5 * place + rng.normal(), 12 + place + 0.5 * rng.normal(), wind))
    table = pl.DataFrame(rows, schema=["ship", "t", "lat", "speed", "wind"], orient="row")
    hole = pl.Series(rng.random(table.height) < 0.1)
    return table.with_columns(lat=pl.when(hole).then(None).otherwise(pl.col("lat")))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    ships().write_csv(folder / "ships.csv")
    run("fit", folder / "ships.csv", *FIT, *SHORT, *SPLITS, "--out", folder / "run")
    return folder


def command(place, name, *arguments, table="ships.csv"):
    return run(name, place / "run", place / table, *arguments)


def test_score(place, capsys):
    command(place, "score", "--out", place / "scored.csv", "--json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 24
    scored = pl.read_csv(place / "scored.csv")
    assert scored.columns == ["ship", "t", "log_likelihood", "standard_error"]
    assert scored.height == ships().height
    total = scored.filter(pl.col("ship") == "s3")["log_likelihood"].sum()
    assert total == pytest.approx(next(line for line in lines if line["ship"] == "s3")["log_likelihood"], rel=1e-6)


def test_filter_and_smooth(place):
    plot = ("--plot", place / "states.svg")
    command(place, "filter", "--out", place / "filtered.parquet", "--particles", "50", *plot)
    assert "state 0" in (place / "states.svg").read_text()
    command(place, "smooth", "--out", place / "smoothed.csv", "--quantiles", "0.25,0.75")
    filtered, smoothed = pl.read_parquet(place / "filtered.parquet"), pl.read_csv(place / "smoothed.csv")
    assert {"lat_mean", "lat_q0.1", "speed_q0.9", "state0_mean", "log_likelihood"} <= set(filtered.columns)
    assert {"state1_q0.25", "state1_q0.75", "distinct"} <= set(smoothed.columns)
    assert filtered.height == smoothed.height == ships().height
    error = (filtered["lat_mean"] - ships()["lat"]).drop_nulls().abs().mean()
    assert error < 10  # degrees, as the table has them


def test_impute(place):
    command(place, "impute", "--out", place / "whole.csv", "--plot", place / "whole.png")
    assert (place / "whole.png").read_bytes().startswith(b"\x89PNG")
    whole, given = pl.read_csv(place / "whole.csv"), ships()
    assert whole["lat"].null_count() == 0
    seen = given["lat"].is_not_null()
    np.testing.assert_array_equal(whole.filter(seen)["lat"], given.filter(seen)["lat"])
    filled = whole.filter(~seen)
    assert (filled["lat_q0.1"] < filled["lat"]).all()
    assert whole.filter(seen)["lat_q0.1"].null_count() == seen.sum()


def test_forecast(place, capsys):
    future = pl.DataFrame({"ship": [f"s{i}" for i in range(24) for _ in range(3)], "t": [14, 15, 16] * 24})
    future.with_columns(wind=pl.lit(0.5)).write_csv(place / "future.csv")
    arguments = ("--horizon", "3", "--out", place / "next.csv", "--samples", "40", "--particles", "40")
    command(place, "forecast", *arguments, "--inputs-from", place / "future.csv")
    made = pl.read_csv(place / "next.csv")
    assert made.columns[:4] == ["ship", "t", "lat_mean", "lat_q0.1"]
    assert made["t"].to_list()[:3] == [14, 15, 16]
    assert (made["lat_q0.1"] < made["lat_q0.9"]).all()
    (place / "next.csv").unlink()
    sentence = refused(capsys, "forecast", place / "run", place / "ships.csv", *arguments, "--plot", "fan.gif")
    assert_one_sentence(sentence, ".png", "fan.gif")
    sentence = refused(capsys, "forecast", place / "run", place / "ships.csv", *arguments)
    assert_one_sentence(sentence, "wind", "--inputs-from")
    assert not (place / "next.csv").exists()


def test_anomaly(place, capsys):
    command(place, "anomaly", "--rate", "0.3", "--out", place / "alarms.csv", "--plot", place / "alarms.svg")
    assert "false-alarm rate 0.3" in (place / "alarms.svg").read_text()
    alarms = pl.read_csv(place / "alarms.csv")
    assert alarms.height == ships().height
    assert alarms["p_value"].is_between(0, 1).all()
    sentence = refused(capsys, "anomaly", place / "run", place / "ships.csv", "--rate", "0.0001", "--particles", "40")
    assert_one_sentence(sentence, "0.0001", "at least")


def test_a_run_is_used_where_its_table_is_not(place, tmp_path):
    (place / "ships.csv").rename(place / "moved.csv")
    try:
        command(place, "score", "--out", tmp_path / "scored.csv", table="moved.csv")
        assert (tmp_path / "scored.csv").exists()
    finally:
        (place / "moved.csv").rename(place / "ships.csv")


WRONG = {
    "a missing column": (lambda t: t.drop("speed"), ["'speed'"]),
    "text among numbers": (lambda t: t.with_columns(pl.col("speed").cast(pl.String).replace("", "fast")).with_columns(
        speed=pl.when(pl.col("t") == 3).then(pl.lit("fast")).otherwise(pl.col("speed"))), ["'speed'", "fast"]),
    "a time twice": (lambda t: pl.concat([t, t.head(1)]), ["the same"]),
    "nothing": (lambda t: t.head(0), []),
}  # fmt: skip


@pytest.mark.parametrize(("change", "parts"), WRONG.values(), ids=WRONG)
def test_tables_that_are_refused(place, tmp_path, capsys, change, parts):
    change(ships()).write_csv(tmp_path / "wrong.csv")
    sentence = refused(capsys, "score", place / "run", tmp_path / "wrong.csv", "--out", tmp_path / "scored.csv")
    assert_one_sentence(sentence, *parts)
    assert not (tmp_path / "scored.csv").exists()


def test_a_model_that_does_not_know_its_likelihood(place, tmp_path, capsys):
    sentence = refused(capsys, "fit", place / "ships.csv", *FIT[:8], "--bound", "exact", "--out", tmp_path / "run")
    assert_one_sentence(sentence, "VRNN", "log_evidence")
    assert not (tmp_path / "run").exists()


def test_another_unit_is_a_warning(place, tmp_path, capsys):
    ships().with_columns(pl.col("speed") * 100).write_csv(tmp_path / "fast.csv")
    run("score", place / "run", tmp_path / "fast.csv")
    assert capsys.readouterr().err.count("is it in another unit?") == 1


def test_a_run_of_music_reads_no_tables(fivo_run, place):
    with pytest.raises(InputError, match="only by a run that was trained on one"):
        fivo.score(fivo_run, place / "ships.csv")
