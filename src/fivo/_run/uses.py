"""Uses of a trained model: `score`, `filtered`, `smoothed`, `impute`, `forecast` and `anomaly`.

All take a run or a model, and series in one of these forms: a table like the one that the run was trained on (a path or
a pandas, polars or pyarrow frame), in the user's units; arrays as they were measured, with NaN for what is missing,
[time, dim], [series, time, dim] or a list of [time, dim]; a `Batch` or a `Split` on the model's scale, for models with
inputs. Results have arrays, `to_frame()` (the same kind of frame as was given), `to_xarray()` and `plot()`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Key

from fivo._terminal.progress import SeriesProgress
from fivo.errors import InputError
from fivo.inference import (
    Anomalies,
    Filtered,
    Forecast,
    Imputed,
    Likelihoods,
    Ordinary,
    Smoothed,
    Trained,
)
from fivo.inference.context import Context, read_context
from fivo.inference.forecasts import future_of
from fivo.inference.rowwise import raw_offsets
from fivo.inference.series import SeriesModel
from fivo.models import SequenceModel

QUANTILES = (0.1, 0.5, 0.9)
EXPECTED = (0.025, 0.975)
"""The interval that plots of alarms show around every row."""

RandomKey = Key[Array, ""]


def score(
    run_or_model: Trained | SequenceModel,
    series: Any,
    *,
    repeats: int = 3,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
    mesh: Mesh | None = None,
) -> Likelihoods:
    """log p(x_t | x_<t) of every row, in nats of the data's own units, and totals of every series.

    Args:
        run_or_model: A run, or any model.
        series: A table, arrays or a `Batch`.
        repeats: Independent filters, for standard errors; exact models need none.
        num_particles: Of the filters.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.
        mesh: Devices that share out the series, such as `fivo.devices.data_mesh()`; changes no number.

    Returns:
        `log_likelihood` [series, time], `standard_error`, `totals` [series], `to_frame()`.
    """
    _check_count(repeats, "repeats")
    context = _read(run_or_model, series)
    with _using(run_or_model, num_particles, key, progress, mesh) as model:
        draws = model.log_increments(context.split, repeats)
    return Likelihoods(context, (), draws + raw_offsets(context.schema, context.seen))


def filtered(
    run_or_model: Trained | SequenceModel,
    series: Any,
    *,
    quantiles: Sequence[float] = QUANTILES,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
    mesh: Mesh | None = None,
) -> Filtered:
    """For every row the latent state given the rows so far, and what was expected of the row before it was seen.

    Args:
        run_or_model: A run, or a model whose proposal reads no future rows.
        series: A table, arrays or a `Batch`.
        quantiles: Which quantiles to give.
        num_particles: Of the filter.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.
        mesh: Devices that share out the series, such as `fivo.devices.data_mesh()`; changes no number.

    Returns:
        `mean` [series, time, dim] and `quantile(q)` of the predictions, `state_mean` [series, time, latent] and
        `state_quantile(q)`, `log_likelihood`, `to_frame()`.
    """
    levels, context = _levels(quantiles), _read(run_or_model, series)
    with _using(run_or_model, num_particles, key, progress, mesh) as model:
        return Filtered(context, levels, model.filtered(context.split, levels))


def smoothed(
    run_or_model: Trained | SequenceModel,
    series: Any,
    *,
    quantiles: Sequence[float] = QUANTILES,
    num_trajectories: int = 100,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
) -> Smoothed:
    """For every row the latent state given all rows of its series.

    Exact for a `LinearGaussian`, by backward simulation where latents are a Markov chain, else by particle Gibbs.

    Args:
        run_or_model: A run, or any model.
        series: A table, arrays or a `Batch`.
        quantiles: Which quantiles to give.
        num_trajectories: Draws of each series' latents; exact models need none.
        num_particles: Of the filter.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.

    Returns:
        `state_mean` [series, time, latent], `state_quantile(q)`, `distinct` [series, time], `to_frame()`.
    """
    _check_count(num_trajectories, "num_trajectories")
    levels, context = _levels(quantiles), _read(run_or_model, series)
    with _using(run_or_model, num_particles, key, progress) as model:
        return Smoothed(context, levels, *model.smoothed(context.split, levels, num_trajectories))


def impute(
    run_or_model: Trained | SequenceModel,
    series: Any,
    *,
    quantiles: Sequence[float] = (0.1, 0.9),
    num_samples: int = 100,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
) -> Imputed:
    """Draw the missing entries given everything that was observed, later rows included.

    Args:
        run_or_model: A run, or any model; of a `LinearGaussian` the answer is exact.
        series: A table, arrays with NaN, or a `Batch` with a mask.
        quantiles: Which quantiles `to_frame()` gives.
        num_samples: Draws of each series.
        num_particles: Of the filter.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.

    Returns:
        `samples` [series, sample, time, dim] with the observed entries as they are, `mean`, `quantile(q)`; `to_frame()`
        is the given table with its missing cells filled.
    """
    _check_count(num_samples, "num_samples")
    levels, context = _levels(quantiles), _read(run_or_model, series)
    with _using(run_or_model, num_particles, key, progress) as model:
        return Imputed(context, levels, *model.imputed(context.split, num_samples))


def forecast(
    run_or_model: Trained | SequenceModel,
    context: Any,
    horizon: int,
    *,
    inputs: Any = None,
    quantiles: Sequence[float] = QUANTILES,
    num_samples: int = 200,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
    mesh: Mesh | None = None,
) -> Forecast:
    """Draw the rows that follow every series.

    Args:
        run_or_model: A run, or a model whose `encode_next` reads one frame at a time.
        context: The series so far: a table, arrays or a `Batch`.
        horizon: How many rows to draw.
        inputs: The inputs of those rows, for models that read inputs: a table with the id, time and input columns if
            the context is a table, else an array [series, horizon, input].
        quantiles: Which quantiles `to_frame()` gives.
        num_samples: Draws for each series.
        num_particles: Of the filter that reads the series so far.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.
        mesh: Devices that share out the series, such as `fivo.devices.data_mesh()`; changes no number.

    Returns:
        `samples` [series, sample, horizon, dim], `mean`, `quantile(q)`, `to_frame()`, `to_xarray()`, `plot()`.
    """
    _check_count(horizon, "horizon")
    _check_count(num_samples, "num_samples")
    levels, seen = _levels(quantiles), _read(run_or_model, context)
    future = future_of(seen, horizon, inputs)
    with _using(run_or_model, num_particles, key, progress, mesh) as model:
        drawn = model.forecast(seen.split, horizon, inputs=future.inputs, num_samples=num_samples)
    return Forecast(seen, levels, drawn, future.times)


def anomaly(
    run_or_model: Trained | SequenceModel,
    series: Any,
    *,
    rate: float = 0.01,
    ordinary: Any = None,
    num_particles: int = 200,
    key: RandomKey | None = None,
    progress: bool = True,
    mesh: Mesh | None = None,
) -> Anomalies:
    """p-values of every row and every series by rank among ordinary data, and alarms at a false-alarm rate that is met.

    Args:
        run_or_model: A run, or a model whose proposal reads no future rows.
        series: A table, arrays or a `Batch`.
        rate: The false-alarm rate, for rows and for series; one that the ordinary data are too few for is refused.
        ordinary: Data to calibrate with, in any of the forms of `series`, which took no part in training, or the
            `ordinary` of an earlier result. By default the run's split `calibrate` if it has one, else `test`.
        num_particles: Of the filter.
        key: A random key; by default that of seed 0.
        progress: Show progress on standard error.
        mesh: Devices that share out the series, such as `fivo.devices.data_mesh()`; changes no number.

    Returns:
        `p_values` and `alarms` [series, time], `series_p_values` and `series_alarms` [series], `to_frame()`, `plot()`.
    """
    context = _read(run_or_model, series)
    if ordinary is None and not isinstance(run_or_model, Trained):
        raise InputError("alarms of a model are calibrated with ordinary data; give some as `ordinary`.")
    with _using(run_or_model, num_particles, key, progress, mesh) as model:
        if ordinary is None:
            ordinary = Ordinary.held_out(run_or_model, model)  # pyright: ignore[reportArgumentType] - it is one
        elif not isinstance(ordinary, Ordinary):
            usual = _read(run_or_model, ordinary)
            ordinary = Ordinary.of(usual, model.filtered(usual.split, EXPECTED))
        ordinary.check_rate(rate)
        found = model.filtered(context.split, EXPECTED)
        ties = jax.random.uniform(jax.random.fold_in(model.key, 1), (len(found.surprise),))
    return Anomalies(context, EXPECTED, found, ordinary, rate, np.asarray(ties, np.float64))


def _read(run_or_model: Trained | SequenceModel, series: Any) -> Context:
    if isinstance(run_or_model, Trained):
        return read_context(run_or_model.columns, run_or_model.table, series)
    if not isinstance(run_or_model, SequenceModel):
        raise InputError(f"the first argument must be a run or a SequenceModel, got a {type(run_or_model).__name__}.")
    return read_context(None, None, series)


@contextmanager
def _using(
    run_or_model: Trained | SequenceModel,
    num_particles: int,
    key: RandomKey | None,
    progress: bool,
    mesh: Mesh | None = None,
) -> Iterator[SeriesModel]:
    model = run_or_model.model if isinstance(run_or_model, Trained) else run_or_model
    key = jax.random.key(0) if key is None else key
    if not progress:
        yield SeriesModel(model, num_particles, key, mesh=mesh)
        return
    with SeriesProgress() as bar:
        yield SeriesModel(model, num_particles, key, bar, mesh)


def _levels(quantiles: Sequence[float]) -> tuple[float, ...]:
    levels = tuple(quantiles)
    if not levels or not all(isinstance(level, int | float) and 0 < level < 1 for level in levels):
        raise InputError(f"quantiles must be numbers between 0 and 1, got {list(levels)!r:.60}.")
    return levels


def _check_count(value: Any, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a positive integer, got {value!r:.60}.")
