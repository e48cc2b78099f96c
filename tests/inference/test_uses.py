"""Runs and models on frames of several kinds, on arrays and on batches; results as frames, arrays and plots."""

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fivo
from fivo.data import Dataset
from fivo.inference import Trained
from fivo.models import LinearGaussian

MODEL = LinearGaussian(
    transition_matrix=np.array([[0.9]], np.float32),
    transition_covariance=np.array([[0.2]], np.float32),
    emission_matrix=np.array([[1.0], [0.5]], np.float32),
    emission_covariance=np.diag(np.array([0.3, 0.2], np.float32)),
    initial_mean=np.zeros(1, np.float32),
    initial_covariance=np.eye(1, dtype=np.float32),
    proposal="optimal",
)
SERIES, STEPS = 12, 9


class Of(Trained):
    """A run of a dataset, with a model that was not trained."""

    model = MODEL

    def __init__(self, dataset):
        self.dataset = dataset


def table(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    times = np.datetime64("2024-01-01T00", "us") + np.arange(STEPS) * np.timedelta64(1, "h")
    values = 50 + 10 * rng.normal(size=(SERIES * STEPS, 2))
    frame = pl.DataFrame({"ship": np.repeat([f"s{i}" for i in range(SERIES)], STEPS), "at": np.tile(times, SERIES)})
    frame = frame.with_columns(knots=pl.Series(values[:, 0]), draught=pl.Series(values[:, 1]))
    return frame.with_columns(knots=pl.when(pl.int_range(pl.len()) % 7 == 3).then(None).otherwise(pl.col("knots")))


FRAME = table()
RUN = Of(Dataset.from_table(FRAME, id="ship", time="at", split="series"))
OPTIONS = {"num_particles": 40, "progress": False}


@pytest.fixture(scope="module")
def results():
    """Every result for the table."""
    return {
        "score": fivo.score(RUN, FRAME, **OPTIONS),
        "filtered": fivo.filtered(RUN, FRAME, **OPTIONS),
        "smoothed": fivo.smoothed(RUN, FRAME, **OPTIONS),
        "impute": fivo.impute(RUN, FRAME, num_samples=50, **OPTIONS),
        "forecast": fivo.forecast(RUN, FRAME, 5, num_samples=60, **OPTIONS),
        "anomaly": fivo.anomaly(RUN, FRAME, rate=0.2, ordinary=table(1), **OPTIONS),
    }


@pytest.mark.parametrize("make", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow], ids=["pandas", "pyarrow"])
def test_a_frame_comes_back_as_the_kind_that_was_given(results, make):
    given = make(FRAME)
    for name, use in {"score": fivo.score, "impute": fivo.impute}.items():
        made = use(RUN, given, **OPTIONS).to_frame()
        assert type(made) is type(given)
        same = pl.from_pandas(made) if isinstance(made, pd.DataFrame) else pl.from_arrow(made)
        columns = [column for column in same.columns if column in ("log_likelihood", "draught")]
        np.testing.assert_allclose(same[columns], results[name].to_frame()[columns], rtol=1e-6)
    assert isinstance(fivo.forecast(RUN, given, 2, num_samples=5, **OPTIONS).to_frame(), type(given))


def test_a_pandas_frame_keeps_its_index():
    given = FRAME.to_pandas().set_index(np.arange(len(FRAME)) + 1000)
    made = fivo.score(RUN, given, **OPTIONS).to_frame()
    assert made.index.equals(given.index)
    assert not isinstance(made, pa.Table)


def test_arrays_and_frames_agree(results):
    """The same numbers, as measured, of a run of arrays that were standardised as the table was."""
    values = FRAME.select("knots", "draught").to_numpy().reshape(SERIES, STEPS, 2)
    found = fivo.score(RUN, values, **OPTIONS)
    assert found.log_likelihood.shape == (SERIES, STEPS)
    expected = results["score"].log_likelihood
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-5, atol=1e-5)
    made = fivo.forecast(RUN, list(values), 5, num_samples=60, **OPTIONS)
    np.testing.assert_allclose(made.samples, results["forecast"].samples, rtol=1e-4)
    assert made.to_frame().columns[:4] == ["series", "step", "knots_mean", "knots_q0.1"]
    assert made.to_frame()["step"].to_list()[:5] == list(range(STEPS, STEPS + 5))


def test_a_batch_is_on_the_scale_of_the_model():
    x = np.random.default_rng(2).normal(size=(3, 6, 2)).astype(np.float32)
    lengths = np.array([6, 4, 5], np.int32)
    batch = fivo.Batch(jax.numpy.asarray(x), jax.numpy.asarray(lengths))
    for trained in (MODEL, RUN):
        found = fivo.score(trained, batch, **OPTIONS)
        exact = np.asarray(MODEL.log_increments(batch))
        for row, exact_row, length in zip(found.log_likelihood, exact, lengths, strict=True):
            np.testing.assert_allclose(row[:length], exact_row[:length], rtol=1e-5)
            assert np.isnan(row[length:]).all()
        np.testing.assert_allclose(found.totals, MODEL.log_evidence(batch), rtol=1e-5)
    smoothed = fivo.smoothed(MODEL, batch, **OPTIONS)
    exact = np.asarray(MODEL.smoothed(batch).means)
    np.testing.assert_allclose(smoothed.state_mean[1, :4], exact[1, :4], rtol=1e-4, atol=1e-6)


def test_a_key_decides_what_is_drawn(results):
    again = fivo.forecast(RUN, FRAME, 5, num_samples=60, key=jax.random.key(0), **OPTIONS)
    other = fivo.forecast(RUN, FRAME, 5, num_samples=60, key=jax.random.key(1), **OPTIONS)
    np.testing.assert_array_equal(again.samples, results["forecast"].samples)
    assert (other.samples != again.samples).all()


def test_shapes(results):
    forecast, filtered, impute = results["forecast"], results["filtered"], results["impute"]
    assert forecast.samples.shape == (SERIES, 60, 5, 2)
    assert forecast.mean.shape == forecast.quantile(0.3).shape == (SERIES, 5, 2)
    assert filtered.mean.shape == filtered.quantile(0.9).shape == (SERIES, STEPS, 2)
    assert filtered.state_mean.shape == (SERIES, STEPS, 1)
    assert impute.samples.shape == (SERIES, 50, STEPS, 2)
    assert results["anomaly"].p_values.shape == (SERIES, STEPS)
    with pytest.raises(fivo.InputError, match="one that was asked for"):
        filtered.quantile(0.33)


def test_what_was_observed_is_not_imputed(results):
    values = FRAME.select("knots", "draught").to_numpy().reshape(SERIES, STEPS, 2)
    drawn = results["impute"].samples
    seen = ~np.isnan(values)
    np.testing.assert_allclose(drawn.mean(axis=1)[seen], values[seen], rtol=1e-5)
    assert (drawn.std(axis=1)[~seen] > 0.1).all()


def test_labelled_arrays(results):
    for result in results.values():
        assert result.to_xarray().sizes["series"] == SERIES
    labelled = results["forecast"].to_xarray()
    assert labelled["knots"].dims == ("series", "sample", "step")
    assert labelled.series.values.tolist() == results["forecast"].ids


@pytest.mark.parametrize("name", ["filtered", "smoothed", "impute", "forecast", "anomaly"])
def test_plots_have_labels_and_a_legend(results, name):
    figure = results[name].plot(["s3"], title="a title")
    left = [axes.get_ylabel() for axes in figure.axes]
    assert all(left)
    assert figure.axes[-1].get_xlabel() == "at"
    assert figure.axes[0].get_title(loc="left") == "ship s3"
    assert figure.legends
    if name in ("impute", "forecast", "anomaly"):
        assert left[:2] == ["knots", "draught"]
    with pytest.raises(fivo.InputError, match="must name series"):
        results[name].plot(["nobody"])


def test_a_fan_holds_its_forecast(results):
    """The drawn intervals are the quantiles of the draws."""
    forecast = results["forecast"]
    (knots, _), (_, low, high) = forecast.tracks(["s2"]), forecast.tracks(["s2"])[0].intervals[0]
    np.testing.assert_allclose(low[-5:], forecast.quantile(0.025)[2, :, 0])
    np.testing.assert_allclose(high[-5:], forecast.quantile(0.975)[2, :, 0])
    assert np.isnan(low[:-5]).all()
    np.testing.assert_array_equal(np.asarray(knots.times)[:STEPS], FRAME.filter(pl.col("ship") == "s2")["at"])


REFUSED = {
    "a model without ordinary data": (lambda: fivo.anomaly(MODEL, np.zeros((5, 2))), "give some as `ordinary`"),
    "a table for a model": (lambda: fivo.score(MODEL, FRAME), "only by a run that was trained on one"),
    "no horizon": (lambda: fivo.forecast(RUN, FRAME, 0), "horizon must be a positive integer"),
    "a level": (lambda: fivo.filtered(RUN, FRAME, quantiles=[10.0]), "between 0 and 1"),
    "another width": (lambda: fivo.score(RUN, np.zeros((4, 3))), "must have 2 entries"),
    "a rate": (lambda: fivo.anomaly(RUN, FRAME, ordinary=FRAME, rate=0.01), "needs at least 99"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_mistakes_are_one_sentence(call, words):
    with pytest.raises(fivo.InputError, match=words):
        call()
