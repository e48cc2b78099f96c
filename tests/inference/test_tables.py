"""A model of a table beside the exact answers of a linear-Gaussian model with inputs and missing cells."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from scipy import stats

import fivo
from fivo.data import SplitRule, TableColumn, TableSchema, TimeRule
from fivo.inference import Calibration, crps
from fivo.inference.context import read_context
from fivo.inference.forecasts import future_of
from fivo.models import LinearGaussian, simulate
from tests.inference.known import Known

SERIES, STEPS, HORIZON = 60, 30, 4
SCHEMA = TableSchema(
    values=(TableColumn("a", "real"), TableColumn("b", "real")),
    inputs=(TableColumn("u", "real"),),
    time=TimeRule("number"),
    split=SplitRule("series"),
    id="id",
    time_column="t",
)
MODEL = LinearGaussian(
    transition_matrix=np.array([[0.8, 0.3], [-0.2, 0.7]], np.float32),
    transition_covariance=np.array([[0.4, 0.1], [0.1, 0.3]], np.float32),
    emission_matrix=np.array([[1.0, 0.4], [-0.3, 0.8]], np.float32),
    emission_covariance=np.array([[0.3, 0.1], [0.1, 0.2]], np.float32),
    initial_mean=np.array([0.5, -0.5], np.float32),
    initial_covariance=np.eye(2, dtype=np.float32),
    input_matrix=np.array([[0.5], [0.0]], np.float32),
    emission_input_matrix=np.array([[0.0], [0.3]], np.float32),
    proposal="optimal",
)


def drawn(seed: int, series: int = SERIES, steps: int = STEPS + HORIZON, missing: float = 0.2):
    """Values [series, steps, 2], inputs and masks of simulated series."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(series, steps, 1)).astype(np.float32)
    keys = jax.random.split(jax.random.key(seed), series)
    x = jax.jit(jax.vmap(lambda k, u: simulate(MODEL, steps, key=k, inputs=u).observations))(keys, u)
    return np.asarray(x), u, rng.random((series, steps, 2)) >= missing


def frame(x: np.ndarray, u: np.ndarray, mask: np.ndarray, times: slice = slice(None)) -> pl.DataFrame:
    """A long table, its rows in no order."""
    series, steps = x.shape[:2]
    chosen = np.arange(steps)[times]
    held = np.where(mask, x, np.nan)[:, times]
    table = pl.DataFrame(
        {
            "id": np.repeat([f"s{i}" for i in range(series)], len(chosen)),
            "t": np.tile(chosen, series),
            "a": held[..., 0].reshape(-1),
            "b": held[..., 1].reshape(-1),
            "u": u[:, times, 0].reshape(-1),
        }
    )
    return table.with_columns(pl.col("a", "b").fill_nan(None)).sample(fraction=1.0, shuffle=True, seed=1)


X, U, MASK = drawn(0)
SEEN = frame(X, U, MASK, slice(0, STEPS))
BATCH = fivo.Batch.from_sequences(X[:, :STEPS], inputs=U[:, :STEPS], mask=MASK[:, :STEPS])


RUN = Known(MODEL, SCHEMA)


def in_order(table: pl.DataFrame, column: str) -> np.ndarray:
    """A column as [series, steps], whatever the order of the rows."""
    place = pl.col("id").str.slice(1).cast(pl.Int64).alias("place")
    return table.with_columns(place).sort("place", "t").get_column(column).to_numpy().reshape(SERIES, -1)


def test_rows_come_back_in_the_order_they_came():
    rows = fivo.score(RUN, SEEN).to_frame()
    assert rows.select("id", "t").equals(SEEN.select("id", "t"))


def test_scores_are_those_of_the_kalman_filter():
    found = fivo.score(RUN, SEEN)
    rows, series = found.to_frame(), found.to_frame("series")
    np.testing.assert_allclose(in_order(rows, "log_likelihood"), MODEL.log_increments(BATCH), rtol=1e-5, atol=1e-5)
    totals = dict(zip(series["id"], series["log_likelihood"], strict=True))
    assert totals["s3"] == pytest.approx(float(MODEL.log_evidence(BATCH)[3]), rel=1e-5)


def test_scores_of_a_filter_agree_within_their_errors():
    rows = fivo.score(Known(DISGUISED, SCHEMA), SEEN, repeats=4, num_particles=400).to_frame()
    exact = np.asarray(MODEL.log_increments(BATCH))
    z = (in_order(rows, "log_likelihood") - exact) / np.maximum(in_order(rows, "standard_error"), 1e-3)
    assert np.median(np.abs(z)) < 1.5


def _disguised(model):
    """A model with the same laws that is no `LinearGaussian`."""

    class Disguised(fivo.models.SequenceModel):
        inner: LinearGaussian
        markov = True

        @property
        def num_inputs(self):
            return 1

        def initial_prior(self, state, context):
            return self.inner.initial_prior(state, context)

        def prior(self, state, context):
            return self.inner.prior(state, context)

        def emission(self, state, latent, context):
            return self.inner.emission(state, latent, context)

        def advance(self, state, latent, history):
            return self.inner.advance(state, latent, history)

    return Disguised(model)


DISGUISED = _disguised(MODEL)


def test_smoothed_states_are_exact():
    found = fivo.smoothed(RUN, SEEN).to_frame()
    exact = MODEL.smoothed(BATCH)
    np.testing.assert_allclose(in_order(found, "state1_mean"), np.asarray(exact.means)[..., 1], rtol=1e-4, atol=1e-5)
    upper = np.asarray(exact.means)[..., 0] + stats.norm.ppf(0.9) * np.sqrt(np.asarray(exact.covariances)[..., 0, 0])
    np.testing.assert_allclose(in_order(found, "state0_q0.9"), upper, rtol=1e-3, atol=1e-4)


def test_smoothed_states_by_backward_simulation():
    found = fivo.smoothed(Known(DISGUISED, SCHEMA), SEEN, num_trajectories=200).to_frame()
    exact = MODEL.smoothed(BATCH)
    spread = np.sqrt(np.asarray(exact.covariances)[..., 0, 0])
    z = (in_order(found, "state0_mean") - np.asarray(exact.means)[..., 0]) / spread
    assert np.abs(z).mean() < 3 / np.sqrt(200)
    assert np.median(in_order(found, "distinct")) > 20


def test_filtered_states_and_predictions():
    found = fivo.filtered(RUN, SEEN).to_frame()
    exact = MODEL.filtered(BATCH)
    spread = np.sqrt(np.asarray(exact.covariances)[..., 1, 1])
    z = (in_order(found, "state1_mean") - np.asarray(exact.means)[..., 1]) / spread
    assert np.abs(z).mean() < 4 / np.sqrt(200)
    inside = (X[:, :STEPS, 0] >= in_order(found, "a_q0.1")) & (X[:, :STEPS, 0] <= in_order(found, "a_q0.9"))
    assert 0.76 < inside.mean() < 0.84  # rows that were missing are held out, and covered as well


def test_imputed_cells_are_the_conditional_normals():
    found = fivo.impute(RUN, SEEN, num_samples=400).to_frame()
    holes = ~MASK[:, :STEPS, 0]
    kept = in_order(found, "a")[~holes]
    np.testing.assert_array_equal(kept, X[:, :STEPS, 0].astype(np.float64)[~holes])
    mean, low, high = (in_order(found, name)[holes] for name in ("a", "a_q0.1", "a_q0.9"))
    exact_mean, exact_deviation = _conditional_cells()
    np.testing.assert_allclose(mean, exact_mean[..., 0][holes], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(high - low, 2 * stats.norm.ppf(0.9) * exact_deviation[..., 0][holes], rtol=0.02)
    assert np.isnan(in_order(found, "a_q0.1").astype(float)[~holes]).all()
    inside = (X[:, :STEPS, 0][holes] >= low) & (X[:, :STEPS, 0][holes] <= high)
    assert 0.74 < inside.mean() < 0.86


def _conditional_cells():
    """Mean and deviation of every cell given all that was observed, from the joint normal of a whole series."""
    a, c = np.asarray(MODEL.transition_matrix, float), np.asarray(MODEL.emission_matrix, float)
    q, r = np.asarray(MODEL.transition_covariance, float), np.asarray(MODEL.emission_covariance, float)
    b, d = np.asarray(MODEL.input_matrix, float), np.asarray(MODEL.emission_input_matrix, float)
    covariances = [np.asarray(MODEL.initial_covariance, float)]
    for _ in range(STEPS - 1):
        covariances.append(a @ covariances[-1] @ a.T + q)
    joint = np.zeros((STEPS * 2, STEPS * 2))
    for s in range(STEPS):
        power = np.eye(2)
        for t in range(s, STEPS):
            block = c @ power @ covariances[s] @ c.T + (r if s == t else 0)
            joint[2 * t : 2 * t + 2, 2 * s : 2 * s + 2] = block
            joint[2 * s : 2 * s + 2, 2 * t : 2 * t + 2] = block.T
            power = a @ power
    means, deviations = [], []
    for x, u, mask in zip(X[:, :STEPS], U[:, :STEPS], MASK[:, :STEPS], strict=True):
        z = [np.asarray(MODEL.initial_mean, float)]
        for t in range(1, STEPS):
            z.append(a @ z[-1] + b @ u[t])
        mean = np.concatenate([c @ z[t] + d @ u[t] for t in range(STEPS)])
        seen, flat = mask.reshape(-1), x.reshape(-1).astype(float)
        gain = np.linalg.solve(joint[np.ix_(seen, seen)], joint[seen]).T
        means.append((mean + gain @ (flat[seen] - mean[seen])).reshape(STEPS, 2))
        deviations.append(np.sqrt(np.maximum(np.diag(joint - gain @ joint[seen]), 0)).reshape(STEPS, 2))
    return np.stack(means), np.stack(deviations)


def test_forecasts_have_the_exact_law():
    future = frame(X, U, MASK, slice(STEPS, None)).select("id", "t", "u")
    made = fivo.forecast(RUN, SEEN, HORIZON, inputs=future, num_samples=1000)
    table = made.to_frame()
    assert table.columns[:6] == ["id", "t", "a_mean", "a_q0.1", "a_q0.5", "a_q0.9"]
    assert table.height == SERIES * HORIZON
    assert table["t"].to_list()[:HORIZON] == list(range(STEPS, STEPS + HORIZON))
    last = MODEL.filtered(BATCH)
    mean = np.asarray(last.means[:, -1], float)
    covariance = np.asarray(last.covariances[:, -1], float)
    a, c = np.asarray(MODEL.transition_matrix, float), np.asarray(MODEL.emission_matrix, float)
    order = [int(i[1:]) for i in made.ids]
    for step in range(HORIZON):
        u = U[:, STEPS + step].astype(float)
        mean = mean @ a.T + u @ np.asarray(MODEL.input_matrix, float).T
        covariance = a @ covariance @ a.T + np.asarray(MODEL.transition_covariance, float)
        expected = mean @ c.T + u @ np.asarray(MODEL.emission_input_matrix, float).T
        total = c @ covariance @ c.T + np.asarray(MODEL.emission_covariance, float)
        deviation = np.sqrt(np.stack([np.diag(v) for v in total]))
        z = (made.mean[:, step] - expected[order]) / deviation[order]
        assert np.abs(z).mean() < 5 / np.sqrt(1000) + 3 / np.sqrt(200)
        upper = expected + stats.norm.ppf(0.9) * deviation
        assert np.abs((made.quantile(0.9)[:, step] - upper[order]) / deviation[order]).mean() < 0.15


def test_intervals_cover_what_they_say():
    x, u, mask = drawn(7, series=600, steps=14)
    batch = fivo.Batch.from_sequences(x[:, :10], inputs=u[:, :10], mask=mask[:, :10])
    made = fivo.forecast(MODEL, batch, 4, inputs=u[:, 10:], key=jax.random.key(3))
    low, high = made.quantile(0.1), made.quantile(0.9)
    inside = (low <= x[:, 10:]) & (x[:, 10:] <= high)
    assert inside.size >= 2000
    assert 0.77 < inside.mean() < 0.83


def test_p_values_are_uniform_and_alarms_keep_their_rate():
    x, u, mask = drawn(11, series=100, steps=12)
    ordinary = frame(x, u, mask)
    new_x, new_u, new_mask = drawn(12, series=100, steps=12)
    found = fivo.anomaly(RUN, frame(new_x, new_u, new_mask), ordinary=ordinary, rate=0.05)
    observed = np.concatenate(found.context.seen.masks).any(axis=1)
    assert stats.kstest(np.asarray(found.rows.surprise)[observed], "uniform").pvalue > 1e-3
    per_row, per_series = found.to_frame(), found.to_frame("series")
    for rate in (0.01, 0.05):
        count, alarms = len(per_row), int((per_row["p_value"] <= rate).sum())
        assert stats.binomtest(alarms, count, rate).pvalue > 1e-4
    assert stats.binomtest(int(per_series["alarm"].sum()), 100, 0.05).pvalue > 1e-3
    strange = new_x.copy()
    strange[:, 8] += 6  # a jump in one row of every series
    strange = frame(strange, new_u, np.ones_like(new_mask))
    found = fivo.anomaly(RUN, strange, ordinary=found.ordinary).to_frame()
    recall = found.filter(pl.col("t") == 8)["alarm"].mean()
    assert recall > 0.9


def test_rates_that_cannot_be_met_are_refused():
    calibration = Calibration(np.arange(50.0))
    with pytest.raises(fivo.InputError, match="at least 99 series"):
        calibration.check_rate(0.01, "series")
    calibration.check_rate(0.02, "series")
    assert calibration.p_values(np.array([-1.0]))[0] == pytest.approx(1 / 51)


def test_a_forecast_needs_its_inputs():
    with pytest.raises(fivo.InputError, match="reads u, so a forecast needs a table"):
        fivo.forecast(RUN, SEEN, HORIZON)
    short = frame(X, U, MASK, slice(STEPS, STEPS + 2)).select("id", "t", "u")
    with pytest.raises(fivo.InputError, match="needs the inputs of as many rows of 's"):
        fivo.forecast(RUN, SEEN, HORIZON, inputs=short)


def test_future_rows_come_at_their_own_times():
    """The gap of the first row to come is that since the last row seen, not the first within its table."""
    past = pl.DataFrame({"t": [0.0, 1.0, 3.0, 4.0, 6.0, 7.0, 9.0, 10.0], "y": np.arange(8.0), "u": np.arange(8.0)})
    irregular = fivo.Dataset.from_table(past, time="t", values=["y"], inputs=["u"]).table
    gap = irregular.gap
    later = pl.DataFrame({"t": [10.0, 13.0, 14.0, 18.0], "u": [0.0, 1.0, 2.0, 3.0]})
    found = future_of(read_context(None, irregular, past), 3, later)
    assert found.times[0].tolist() == [13, 14, 18]
    assert np.allclose(found.inputs[0, :, -1] * gap.scale + gap.shift, [3, 1, 4], atol=1e-5)
    regular = fivo.Dataset.from_table(
        past.with_columns(t=pl.Series(range(8))), time="t", values=["y"], inputs=["u"]
    ).table
    with pytest.raises(fivo.InputError, match="where 8 was due it has 9"):
        future_of(
            read_context(None, regular, past.with_columns(t=pl.Series(range(8)))),
            2,
            later.with_columns(t=pl.Series([9, 10, 11, 12])),
        )


def test_crps_of_a_normal():
    samples = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    y = np.array(0.7)
    exact = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    assert crps(samples, y) == pytest.approx(exact, abs=2e-3)
    assert jnp.isfinite(crps(samples[:1], y))
