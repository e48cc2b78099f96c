"""Backtests beside exact answers: Kalman forecasts, closed forms and hand computations."""

import jax
import numpy as np
import pytest
from scipy import stats

import fivo
from fivo.data import Split, SplitRule, TableColumn, TableSchema, TimeRule
from fivo.inference import (
    ModelForecaster,
    SeasonalNaive,
    backtest,
    brier,
    crps,
    energy_score,
    guess_season,
    is_covered,
    log_mass,
    make_windows,
)
from fivo.inference.series import SeriesModel
from fivo.inference.windows import Place, Windows
from fivo.models import LinearGaussian, simulate

SERIES, STEPS, WINDOWS, HORIZON, SAMPLES = 50, 24, 3, 4, 200
UNITS = TableColumn("b", "real", shift=10.0, scale=5.0, mean=10.0, deviation=5.0)
SCHEMA = TableSchema(
    values=(TableColumn("a", "real"), UNITS),
    inputs=(TableColumn("u", "real"),),
    time=TimeRule("number"),
    split=SplitRule("series"),
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


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(SERIES, STEPS, 1)).astype(np.float32)
    keys = jax.random.split(jax.random.key(0), SERIES)
    x = np.asarray(jax.jit(jax.vmap(lambda k, u: simulate(MODEL, STEPS, key=k, inputs=u).observations))(keys, u))
    mask = rng.random(x.shape) >= 0.2
    return Split(tuple(np.where(mask, x, 0)), tuple(mask), tuple(u))


@pytest.fixture(scope="module")
def windows(split):
    return make_windows(SCHEMA, split, WINDOWS, HORIZON)


@pytest.fixture(scope="module")
def forecaster():
    return ModelForecaster(SeriesModel(MODEL), SAMPLES)


@pytest.fixture(scope="module")
def made(windows, forecaster):
    return forecaster(windows)


def whole(split):
    """All series as a batch."""
    x, mask, u = (np.stack(part) for part in (split.sequences, split.masks, split.inputs))
    return fivo.Batch.from_sequences(x, inputs=u, mask=mask)


def kalman_forecasts(windows):
    """Mean and deviation [window, horizon, dim] of every row given those before its window, in the table's units."""
    a, c, q, r, b, d = (
        np.asarray(getattr(MODEL, name), float)
        for name in ("transition_matrix", "emission_matrix", "transition_covariance", "emission_covariance",
                     "input_matrix", "emission_input_matrix")
    )  # fmt: skip
    moments, means, deviations = MODEL.filtered(whole(windows.split)), [], []
    for index, (series, origin) in enumerate(windows.places):
        z, p = (np.asarray(part[series, origin - 1], float) for part in moments)
        for u in windows.inputs[index].astype(float):
            z, p = a @ z + b @ u, a @ p @ a.T + q
            means.append(c @ z + d @ u)
            deviations.append(np.sqrt(np.diag(c @ p @ c.T + r)))
    shape = (len(windows.places), HORIZON, 2)
    scale, shift = np.array([1.0, 5.0]), np.array([0.0, 10.0])
    return np.reshape(means, shape) * scale + shift, np.reshape(deviations, shape) * scale


def test_windows_are_spread_over_what_is_held_out(split):
    held = Split(split.sequences, split.masks, split.inputs, (14,) * SERIES)
    origins = [place.origin for place in make_windows(SCHEMA, held, 3, 4).places[:3]]
    assert origins == [14, 17, 20]
    assert [place.origin for place in make_windows(SCHEMA, split, 3, 4).places[:3]] == [12, 16, 20]


def test_crps_is_that_of_the_kalman_forecast(windows, made):
    mean, deviation = kalman_forecasts(windows)
    z = (windows.actual - mean) / deviation
    exact = deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    found = crps(np.moveaxis(made.samples, 1, 0), windows.actual)
    for place in range(2):
        seen = windows.seen[..., place]
        # Windows are drawn independently; the estimate is fair, so that the mean difference is noise alone.
        means = np.array([(found - exact)[i, s, place].mean() for i, s in enumerate(seen) if s.any()])
        assert abs(means.mean()) < 4 * means.std(ddof=1) / np.sqrt(len(means))
        assert means.std() < 0.2 * exact[..., place].mean()


def test_log_scores_are_the_exact_joint_densities(windows, made, split):
    increments, mask = np.asarray(MODEL.log_increments(whole(split)), float), np.stack(split.masks)
    for place, density in zip(windows.places, made.log_density, strict=True):
        rows = slice(place.origin, place.origin + HORIZON)
        units = np.log(5.0) * mask[place.series, rows, 1].sum()
        assert density == pytest.approx(increments[place.series, rows].sum() - units, rel=1e-4, abs=1e-4)


def test_intervals_cover_what_they_say(windows, made):
    samples = np.moveaxis(made.samples, 1, 0)
    for level in (0.8, 0.95):
        inside = is_covered(samples, windows.actual, level)
        # One step ahead, ranks among the draws are independent between windows, and uniform under the true model.
        seen = windows.seen[:, 0, 0]
        assert stats.binomtest(int(inside[:, 0, 0][seen].sum()), int(seen.sum()), level).pvalue > 1e-3
        by_series = inside.reshape(SERIES, -1).mean(axis=1)
        assert abs(by_series.mean() - level) < 4 * by_series.std(ddof=1) / np.sqrt(SERIES)


def test_no_forecast_sees_the_rows_after_its_origin(split, windows, forecaster, made):
    later = [np.array(x) for x in split]
    for place in windows.places[2::3]:
        later[place.series][place.origin :] = 1e3
    changed = Windows(SCHEMA, Split(tuple(later), split.masks, split.inputs), windows.places, HORIZON)
    for model in (forecaster, SeasonalNaive(3, SAMPLES)):
        before, after = (made if model is forecaster else model(windows)), model(changed)
        np.testing.assert_array_equal(after.samples, before.samples)
        assert (after.log_density[2::3] < before.log_density[2::3]).all()


def test_the_energy_score_is_the_sum_over_all_pairs():
    rng = np.random.default_rng(1)
    samples, actual = rng.normal(size=(30, 2, 3)), rng.normal(size=(2, 3))
    seen = np.array([[True, True, True], [True, False, True]])
    for row in range(2):
        x, y = samples[:, row, seen[row]], actual[row, seen[row]]
        pairs = [np.linalg.norm(a - b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
        expected = np.mean([np.linalg.norm(a - y) for a in x]) - 0.5 * np.sum(pairs) / (30 * 29)
        assert energy_score(samples, actual, seen)[row] == pytest.approx(expected, rel=1e-12)
    one = energy_score(samples[..., :1], actual[..., :1])
    np.testing.assert_allclose(one, crps(samples[..., 0], actual[..., 0]), rtol=1e-12)
    assert np.isnan(energy_score(samples, actual, np.zeros((2, 3), bool))).all()


def test_scores_of_categories_by_hand():
    samples, actual = np.array([0.0, 0.0, 1.0, 2.0]), np.array(0.0)
    p = np.array([0.5, 0.25, 0.25])
    fair = (p[0] - 1) ** 2 + p[1] ** 2 + p[2] ** 2 - (p * (1 - p)).sum() / 3
    assert brier(samples, actual, 3) == pytest.approx(fair)
    assert log_mass(samples, actual, 3) == pytest.approx(np.log((2 + 1 / 3) / 5))
    binary = np.array([0.0, 1.0, 1.0, 1.0])
    assert crps(binary, np.array(1.0)) == pytest.approx(0.5 * brier(binary, np.array(1.0), 2))


ONE = TableSchema(
    values=(TableColumn("y", "real", mean=2.5, deviation=1.0),), time=TimeRule("rows"), split=SplitRule("time")
)


def test_seasonal_naive_by_hand():
    y = np.array([[1.0], [2.0], [3.0], [4.0], [3.5], [5.0], [6.0]], np.float32)
    windows = Windows(ONE, Split((y,)), (Place(0, 4),), 3)
    found = SeasonalNaive(2, 4000, seed=1)(windows)
    # Differences over a season so far are 2 and 2: the next rows are 3, 4 and 3 again, the last with twice the noise.
    spread = np.array([2.0, 2.0, 2.0 * np.sqrt(2)])
    error = 5 / np.sqrt(4000)
    np.testing.assert_allclose(found.samples[0, :, :, 0].mean(axis=0), [3, 4, 3], atol=error * spread.max())
    np.testing.assert_allclose(found.samples[0, :, :, 0].std(axis=0), spread, rtol=error)
    assert found.log_density[0] == pytest.approx(stats.norm.logpdf([3.5, 5.0, 6.0], [3, 4, 3.5], 2).sum())


def test_seasonal_naive_of_other_kinds():
    kinds = (TableColumn("n", "count", deviation=2.0), TableColumn("k", "category", categories=("p", "q", "r")))
    schema = TableSchema(values=kinds, time=TimeRule("rows"), split=SplitRule("time"))
    rows = np.array([[3, 0], [5, 1], [4, 0], [5, 1], [2, 0], [4, 2]], np.float32)
    mask = np.ones((6, 2), bool)
    mask[2, 0] = False
    found = SeasonalNaive(2, 2000)(Windows(schema, Split((rows,), (mask,)), (Place(0, 4),), 2))
    counts, categories = found.samples[0, :, :, 0], found.samples[0, :, :, 1]
    assert (counts == np.rint(counts)).all()
    assert (counts >= 0).all()
    stay, rates = 2.5 / 3, (np.array([2, 2, 0]) + 1 / 3) / 5
    share = stay + (1 - stay) * rates[0]
    assert (categories[:, 0] == 0).mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2000))
    # The missing count is taken for the 3 of a season before, so that no count changed: a spread of 0.3.
    mass = np.diff(stats.norm.cdf(np.array([[1.5, 2.5], [3.5, 4.5]]), [[3], [5]], 0.3), axis=1)
    expected = np.log(mass).sum() + np.log(share) + np.log((1 - stay) * rates[2])
    assert found.log_density[0] == pytest.approx(expected)


def test_scores_are_put_together(windows, forecaster):
    scores, each = backtest(windows, {"ours": forecaster, "naive": SeasonalNaive(1, 100)})
    ours = scores["ours"]
    assert ours.crps == pytest.approx((ours.columns["a"].crps + ours.columns["b"].crps / 5) / 2)
    assert ours.crps < scores["naive"].crps
    assert ours.energy < scores["naive"].energy
    assert ours.log_score > scores["naive"].log_score
    assert len(each) == 2 * SERIES * WINDOWS
    assert np.mean([w.energy for w in each if w.model == "ours" and w.energy is not None]) == pytest.approx(
        ours.energy, rel=0.02
    )


SEASONS = [
    (TimeRule("datetime", 3600.0, "second"), 24),
    (TimeRule("date", 86400.0, "second"), 7),
    (TimeRule("date", 1.0, "month"), 12),
    (TimeRule("date", 3.0, "month"), 4),
    (TimeRule("datetime", 3600.0, "second", regular=False), 1),
    (TimeRule("number"), 1),
]


@pytest.mark.parametrize(("time", "season"), SEASONS)
def test_seasons_are_guessed_from_the_step_of_time(time, season):
    assert guess_season(TableSchema(values=ONE.values, time=time, split=ONE.split)) == season


def test_windows_that_do_not_fit_are_refused(split):
    held = Split(split.sequences, split.masks, split.inputs, (14,) * SERIES)
    with pytest.raises(fivo.InputError, match=r"3 windows of 9 rows need at least 11 rows .* but there are 10 of 's'"):
        make_windows(SCHEMA, held, 3, 9, ["s"] * SERIES)
    with pytest.raises(fivo.InputError, match="windows must be a positive integer, got 0"):
        make_windows(SCHEMA, held, 0, 4)
    with pytest.raises(fivo.InputError, match="season must be a positive integer, got 0"):
        SeasonalNaive(0)
