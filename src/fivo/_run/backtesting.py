"""`Run.backtest`: a run's forecasts of rows that it has not seen, compared with simple models on the same windows."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from fivo import inference
from fivo.data import Dataset, Split, TableSchema, apply_schema, as_table, split_labels
from fivo.errors import InputError
from fivo.inference import ModelForecaster, SeasonalNaive, Windows, guess_season, make_windows
from fivo.inference.series import SeriesModel, Told
from fivo.models import LinearGaussian
from fivo.runs import Backtest
from fivo.settings import Table, flattened

if TYPE_CHECKING:
    from fivo._run.run import Run

LINEAR, NAIVE = "linear-gaussian", "seasonal-naive"
COMPANION = "backtest/linear-gaussian"
"""Where in a run's directory the model that it is compared with is kept."""
Progress = Callable[[str, int, int], None]


def backtest_run(
    run: "Run",
    *,
    windows: int = 5,
    horizon: int = 24,
    season: int | None = None,
    table: Any = None,
    split: str = "test",
    compare: bool = True,
    num_samples: int = 200,
    num_particles: int = 200,
    seed: int = 0,
    progress: Progress = lambda what, done, total: None,
    fit_companion: Callable[[Dataset, Path], "Run"] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Backtest:
    """Score a run's forecasts from origins within held-out rows; parameters stay as fitted, earlier rows are context.

    Args:
        run: A run of a table.
        windows: Origins in each series, evenly spread over its held-out rows, the last at their end.
        horizon: Rows to forecast from each.
        season: Rows of a season, for seasonal-naive; by default 24 for hours, 7 for days, 12 for months, 4 for quarters
            and else 1.
        table: Another table to take windows from: rows at the beginning of a series that the run was trained or
            validated on are context, and if there are none, the first half of the series is.
        split: The split to take windows from: test, calibrate or, to choose between models, valid.
        compare: Whether to score seasonal-naive and an exact linear-Gaussian model, fitted to the same rows, too.
        num_samples: Draws of each window.
        num_particles: Of the filters.
        seed: Random seed.
        progress: Called with what is being done, how much is done and of how much.
        fit_companion: Fits that linear-Gaussian model into a directory.
        warn: Called with a sentence about whatever looks wrong in the table.

    Returns:
        The scores of every model; `Backtest.own` names the run's own.
    """
    schema = run.table
    if schema is None:
        raise InputError(f"{str(run.directory.path)!r} was not trained on a table; fit one with `fivo fit my.csv`.")
    key, watch = jax.random.key(seed), Told(progress)
    if not isinstance(num_samples, int) or num_samples < 2:
        raise InputError(f"the number of samples must be at least 2, got {num_samples!r:.60}.")
    chosen = guess_season(schema) if season is None else season
    naive = SeasonalNaive(chosen, num_samples, seed)
    data, (names, times) = _data(run, schema, table, split, warn or warnings.warn)
    made = make_windows(schema, data, windows, horizon, names)
    own = run.settings.model.kind if run.settings.model.kind != "own" else "own model"
    forecasters: dict[str, Any] = {own: ModelForecaster(SeriesModel(run.model, num_particles, key, watch), num_samples)}
    notes = []
    if compare:
        forecasters[NAIVE] = naive
        reason = _no_companion(run, schema)
        if reason is not None:
            notes.append(f"{LINEAR} is left out: {reason}")
        elif fit_companion is not None and own != LINEAR:
            fitted = fit_companion(run.dataset, run.directory.path / COMPANION)
            forecasters[LINEAR] = ModelForecaster(SeriesModel(fitted.model, key=key, watch=watch), num_samples)
    scores, each = inference.backtest(made, forecasters, labels=_labels(made, names, times), progress=progress)
    return Backtest(
        data=split if table is None else str(table if isinstance(table, str | Path) else "a table"),
        series=len(data),
        windows=windows,
        horizon=horizon,
        season=chosen,
        samples=num_samples,
        particles=num_particles,
        seed=seed,
        steps=run.step,
        own=own,
        models=scores,
        each=each,
        notes=notes,
        config=flattened(run.settings),
    )


def _no_companion(run: "Run", schema: TableSchema) -> str | None:
    """Why no linear-Gaussian model can be fitted, if so."""
    if isinstance(run.model, LinearGaussian) and run.settings.model.kind != LINEAR:
        return "the run's own model is one."
    others = [column.name for column in schema.values if column.kind != "real"]
    if others:
        return f"it needs columns of real numbers, but {others[0]!r:.60} is no such."
    if run.data is None:
        return "it is fitted to the run's own table, which is not there."
    return None


Labels = tuple[list[str] | None, list[Any] | None]


def _data(run: "Run", schema: TableSchema, table: Any, split: str, warn: Callable[[str], None]) -> tuple[Split, Labels]:
    """The series to take windows from, what they are called, and their times."""
    if table is not None:
        seen = apply_schema(schema, as_table(table))
        for sentence in seen.warnings:
            warn(sentence)
        given = seen.split
        starts = tuple(_known_rows(x, run.data) for x in given)
        return Split(given.sequences, given.masks, given.inputs, starts), (_texts(seen.ids), seen.times)
    if split not in ("valid", "calibrate", "test"):
        raise InputError(f"windows are taken from the split valid, calibrate or test, got {split!r:.40}.")
    source = run.settings.data
    labels: Labels = (None, None)
    if isinstance(source, Table) and Path(source.dataset).exists():
        ids, times = split_labels(schema, source.dataset, split)
        labels = _texts(ids), times
    return run.dataset.split(split), labels


def _known_rows(x: np.ndarray, dataset: Dataset | None) -> int:
    """How many of a series' first rows the run was trained or validated on."""
    if dataset is None:
        return 0
    known = [y for name in ("train", "valid") for y in dataset.splits[name]]
    return max((len(y) for y in known if len(y) <= len(x) and np.array_equal(x[: len(y)], y)), default=0)


def _texts(ids: list[Any]) -> list[str] | None:
    return None if ids == [None] else [str(name) for name in ids]


def _labels(windows: Windows, names: list[str] | None, times: list[Any] | None) -> list[tuple[str, str]]:
    """The series and the last known time of every window."""
    found = []
    for series, origin in windows.places:
        name = str(series) if names is None else names[series]
        found.append((name, str(origin - 1) if times is None else _time(times[series][origin - 1])))
    return found


def _time(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{float(value):g}" if float(value) < 1e6 else repr(float(value)).removesuffix(".0")
