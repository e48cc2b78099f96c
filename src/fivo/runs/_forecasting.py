"""What backtests write about a run, and what a run was chosen from."""

from typing import Any, ClassVar

from fivo.runs._records import Count, Part
from fivo.runs._sealing import Record


class ColumnScores(Part, frozen=True):
    """Scores of the forecasts of one column, in its units; None where a kind of column has no such score.

    Args:
        kind: Real, count, binary or category.
        crps: The continuous ranked probability score.
        mae: The mean absolute error of the forecasts' means.
        rmse: The root of the mean squared error of the forecasts' means.
        coverage80: The share of values within their 80 % interval.
        coverage95: The share of values within their 95 % interval.
        brier: The Brier score, of binaries and categories.
        log_mass: The log-probability of what happened, of binaries and categories.
    """

    kind: str
    crps: float | None
    mae: float | None
    rmse: float | None
    coverage80: float | None
    coverage95: float | None
    brier: float | None
    log_mass: float | None


class ForecastScores(Part, frozen=True):
    """Scores of the forecasts of all columns together, over all windows.

    Args:
        crps: The mean CRPS of the columns, each in its deviations in train; categories have half their Brier score.
        energy: The energy score of rows without categories, in the same units.
        log_score: log p(rows of a window | rows before it), nats per row in the table's units.
        mae: The mean of the columns' errors, each in its deviations in train.
        rmse: As `mae`.
        coverage80: The share of values within their 80 % intervals.
        coverage95: The share of values within their 95 % intervals.
        brier: The mean of the columns' Brier scores.
        log_mass: The mean of the columns' log-probabilities.
        columns: The scores of every column by its name.
    """

    crps: float | None
    energy: float | None
    log_score: float | None
    mae: float | None
    rmse: float | None
    coverage80: float | None
    coverage95: float | None
    brier: float | None
    log_mass: float | None
    columns: dict[str, ColumnScores]


class WindowScores(Part, frozen=True):
    """Scores of one model in one window.

    Args:
        model: The model's name.
        series: The series' id, or its number.
        origin: The time, or the number, of the last row that the forecast knew.
        crps: As of `ForecastScores`.
        energy: As of `ForecastScores`.
        log_score: As of `ForecastScores`.
        mae: As of `ForecastScores`.
        columns: The CRPS of every column, in its units; of categories half their Brier score.
    """

    model: str
    series: str
    origin: str
    crps: float | None
    energy: float | None
    log_score: float | None
    mae: float | None
    columns: dict[str, float | None]


class Backtest(Record, frozen=True):
    """Forecasts of held-out rows, compared with those of simple models, as `Run.backtest` returns it.

    Args:
        data: The split that windows are of, or the table that was given.
        series: How many there are.
        windows: Of each series.
        horizon: Rows of a window.
        season: Rows of a season, of the seasonal-naive forecast.
        samples: Draws of each forecast.
        particles: Of the filters.
        seed: Random seed.
        steps: The training step that the run's model is of.
        own: Which of the models is the run's own.
        models: The scores of every model by its name.
        each: The scores of every model in every window.
        notes: Sentences about what was left out.
        config: The run's settings.
    """

    KIND: ClassVar[str] = "backtest"
    FILE: ClassVar[str] = "backtest.json"
    REMEDY: ClassVar[str] = "run `fivo backtest` again"

    data: str
    series: Count
    windows: Count
    horizon: Count
    season: Count
    samples: Count
    particles: Count
    seed: int
    steps: Count
    own: str
    models: dict[str, ForecastScores]
    each: list[WindowScores]
    notes: list[str]
    config: dict[str, Any]


class Candidate(Part, frozen=True):
    """A model that was compared; scores are of forecasts of the validation rows.

    Args:
        name: What it is called, and its folder.
        model: The kind of the model.
        crps: As of `ForecastScores`; the smallest was chosen.
        log_score: As of `ForecastScores`.
        coverage80: As of `ForecastScores`.
        validation: The bound that chose its step, nats per step.
        steps: Training steps.
        seconds: Training time.
    """

    name: str
    model: str
    crps: float
    log_score: float | None
    coverage80: float | None
    validation: float
    steps: Count
    seconds: float


class Selection(Record, frozen=True):
    """What the model of a run was chosen from, by the CRPS of forecasts of the validation rows.

    Args:
        budget_seconds: Time for training all candidates together.
        horizon: Rows of a forecast.
        windows: Forecasts of each series.
        chosen: The candidate that is the run.
        candidates: All that were compared.
        naive_crps: The score of the seasonal-naive forecast, for comparison.
        notes: Sentences about what was left out.
    """

    KIND: ClassVar[str] = "selection"
    FILE: ClassVar[str] = "selection.json"
    REMEDY: ClassVar[str] = "restore it from a copy; the run itself does not need it"

    budget_seconds: float
    horizon: Count
    windows: Count
    chosen: str
    candidates: list[Candidate]
    naive_crps: float | None
    notes: list[str]
