"""Scores of forecasts, column by column and window by window, put together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from fivo.data import TableColumn
from fivo.inference.accuracy import brier, crps, energy_score, is_covered, log_mass
from fivo.inference.windows import Forecasts, Windows
from fivo.runs import ColumnScores, ForecastScores, WindowScores

NUMBERS = ("real", "count")
"""Kinds whose means and intervals say something."""


class _Column:
    """The scores of every cell of a column [window, horizon]; cells that were not observed do not count."""

    def __init__(self, column: TableColumn, samples: np.ndarray, actual: np.ndarray, seen: np.ndarray) -> None:
        self.column, self.seen = column, seen
        self.numeric, self.kinds = column.kind in NUMBERS, len(column.categories) or 2
        if column.kind == "category":
            self.crps = 0.5 * brier(samples, actual, self.kinds)
        else:
            self.crps = crps(samples, actual)
        self.error = samples.mean(axis=0) - actual
        self.samples, self.actual = samples, actual

    def mean(self, cells: Any) -> float | None:
        """The average over the cells that were observed."""
        return float(np.mean(cells[self.seen])) if self.seen.any() else None

    def scores(self) -> ColumnScores:
        numeric, kinds = self.numeric, self.kinds
        mse = self.mean(self.error**2)
        safe = np.where(self.seen, self.actual, 0)
        double = 1.0 if self.column.kind == "category" else 0.5  # half of what two categories would have
        return ColumnScores(
            kind=self.column.kind,
            crps=None if self.column.kind == "category" else self.mean(self.crps),
            mae=self.mean(np.abs(self.error)) if numeric else None,
            rmse=None if mse is None or not numeric else float(np.sqrt(mse)),
            coverage80=self.mean(is_covered(self.samples, self.actual, 0.8)) if numeric else None,
            coverage95=self.mean(is_covered(self.samples, self.actual, 0.95)) if numeric else None,
            brier=None if numeric else self.mean(double * brier(self.samples, safe, kinds)),
            log_mass=None if numeric else self.mean(log_mass(self.samples, safe, kinds)),
        )


def scores_of(windows: Windows, made: Forecasts) -> ForecastScores:
    """The scores of forecasts over all windows.

    Args:
        windows: The windows, and what happened in them.
        made: The forecasts.
    """
    columns = _columns(windows, made)
    each = {part.column.name: part.scores() for part in columns}
    scale = {part.column.name: part.column.deviation if part.numeric else 1.0 for part in columns}
    rows = windows.seen.any(axis=2).sum()
    finite = np.isfinite(made.log_density).all() and rows > 0

    def average(name: str) -> float | None:
        found = {column: getattr(scores, name) for column, scores in each.items()}
        units = scale if name in ("mae", "rmse") else dict.fromkeys(scale, 1.0)
        known = [value / units[column] for column, value in found.items() if value is not None]
        return float(np.mean(known)) if known else None

    return ForecastScores(
        crps=_scaled_mean(columns, {part.column.name: part.mean(part.crps) for part in columns}),
        energy=_mean(_energy(windows, made)),
        log_score=float(made.log_density.sum() / rows) if finite else None,
        mae=average("mae"),
        rmse=average("rmse"),
        coverage80=average("coverage80"),
        coverage95=average("coverage95"),
        brier=average("brier"),
        log_mass=average("log_mass"),
        columns=each,
    )


def window_scores(
    windows: Windows, made: Forecasts, model: str, labels: Sequence[tuple[str, str]]
) -> list[WindowScores]:
    """The scores of forecasts in every window.

    Args:
        windows: The windows, and what happened in them.
        made: The forecasts.
        model: What to call the model.
        labels: The series and the origin of each window.
    """
    columns, energy = _columns(windows, made), _energy(windows, made)
    rows = windows.seen.any(axis=2).sum(axis=1)
    found = []
    for index, (series, origin) in enumerate(labels):
        crps = {part.column.name: _cell(part.crps[index], part.seen[index]) for part in columns}
        errors = {part.column.name: _cell(np.abs(part.error[index]), part.seen[index]) for part in columns}
        density = made.log_density[index] / max(rows[index], 1)
        found.append(
            WindowScores(
                model=model,
                series=series,
                origin=origin,
                crps=_scaled_mean(columns, crps),
                energy=_mean(energy[index]),
                log_score=float(density) if np.isfinite(density) and rows[index] else None,
                mae=_scaled_mean([part for part in columns if part.numeric], errors),
                columns=crps,
            )
        )
    return found


def _columns(windows: Windows, made: Forecasts) -> list[_Column]:
    samples = np.moveaxis(made.samples, 1, 0)
    return [
        _Column(column, samples[..., place], windows.actual[..., place], windows.seen[..., place])
        for place, column in enumerate(windows.schema.values)
    ]


def _energy(windows: Windows, made: Forecasts) -> Float[np.ndarray, "window horizon"]:
    """Of all columns but categories, in deviations of train."""
    places = [place for place, column in enumerate(windows.schema.values) if column.kind != "category"]
    if not places:
        return np.full(windows.seen.shape[:2], np.nan)
    scale = np.array([windows.schema.values[place].deviation for place in places])
    samples = np.moveaxis(made.samples, 1, 0)[..., places] / scale
    return energy_score(samples, windows.actual[..., places] / scale, windows.seen[..., places])


def _cell(values: Float[np.ndarray, " horizon"], seen: Bool[np.ndarray, " horizon"]) -> float | None:
    return float(values[seen].mean()) if seen.any() else None


def _scaled_mean(columns: list[_Column], values: dict[str, float | None]) -> float | None:
    """The mean over columns, numbers in deviations of train."""
    known = [(value, part) for part in columns if (value := values[part.column.name]) is not None]
    return _mean(np.array([value / (part.column.deviation if part.numeric else 1.0) for value, part in known]))


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
