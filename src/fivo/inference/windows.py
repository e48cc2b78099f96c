"""Windows of a backtest: origins within the rows of a split, what is known at each, and what then happened."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from fivo.data import Split, TableSchema
from fivo.errors import InputError

DAY, HOUR = 86_400.0, 3_600.0


class Place(NamedTuple):
    """A window: the rows of a series from `origin` on, forecast from those before it."""

    series: int
    origin: int


class Forecasts(NamedTuple):
    """What a model says of every window.

    Args:
        samples: Draws of the rows, in the table's units; categories as their numbers.
        log_density: log p(x_o+1:o+h | x_1:o), the joint log-density of what happened, in the table's units; NaN if
            unknown.
    """

    samples: Float[np.ndarray, "window sample horizon dim"]
    log_density: Float[np.ndarray, " window"]


@dataclass(frozen=True)
class Windows:
    """The windows of a backtest.

    Args:
        schema: How the table was read.
        split: The series, on the model's scale.
        places: Which rows of which series each window is of.
        horizon: Rows of a window.
    """

    schema: TableSchema
    split: Split
    places: tuple[Place, ...]
    horizon: int

    @cached_property
    def past(self) -> Split:
        """What is known at each origin: the rows before it, and nothing else."""
        return self._until(0)

    @cached_property
    def through(self) -> Split:
        """Each window with the rows before it."""
        return self._until(self.horizon)

    @cached_property
    def inputs(self) -> Float[np.ndarray, "window horizon input"] | None:
        """The inputs of the windows' rows, which are known in advance."""
        if self.split.inputs is None:
            return None
        return np.stack([self.split.inputs[i][o : o + self.horizon] for i, o in self.places])

    @cached_property
    def actual(self) -> Float[np.ndarray, "window horizon dim"]:
        """What happened, in the table's units; anything where nothing was observed."""
        rows = np.stack([self.split[i][o : o + self.horizon] for i, o in self.places])
        return self.restored(rows)

    @cached_property
    def seen(self) -> Bool[np.ndarray, "window horizon dim"]:
        """Where anything was observed."""
        if self.split.masks is None:
            return np.ones(self.actual.shape, bool)
        return np.stack([self.split.masks[i][o : o + self.horizon] for i, o in self.places])

    def restored(self, values: Float[np.ndarray, "*shape dim"]) -> Float[np.ndarray, "*shape dim"]:
        """Numbers of the model's scale in the table's units.

        Args:
            values: The numbers, the last axis along the columns.

        Returns:
            As many numbers.
        """
        scale, shift = (np.array([getattr(c, part) for c in self.schema.values]) for part in ("scale", "shift"))
        return np.asarray(values, np.float64) * scale + shift

    @cached_property
    def offsets(self) -> Float[np.ndarray, " window"]:
        """What to add to a window's log-density on the model's scale to have that in the table's units."""
        return -(self.seen @ np.log([column.scale for column in self.schema.values])).sum(axis=1)

    def _until(self, rows: int) -> Split:
        masks, inputs = self.split.masks, self.split.inputs
        return Split(
            tuple(self.split[i][: o + rows] for i, o in self.places),
            None if masks is None else tuple(masks[i][: o + rows] for i, o in self.places),
            None if inputs is None else tuple(inputs[i][: o + rows] for i, o in self.places),
        )


Forecaster = Callable[[Windows], Forecasts]
"""What a backtest scores; it may read `Windows.past` and `inputs`, and what happened only for its density."""


def make_windows(
    schema: TableSchema, split: Split, count: int, horizon: int, names: list[str] | None = None
) -> Windows:
    """Windows that are evenly spread over the rows of each series that belong to a split, the last ones at its end.

    Series that begin with rows of the split have their first half as context.

    Args:
        schema: How the table was read.
        split: Series, with `starts` where the rows of the split begin.
        count: Windows of each series.
        horizon: Rows of a window.
        names: What the series are called, for errors.

    Returns:
        The windows, series by series.
    """
    for name, number in (("windows", count), ("horizon", horizon)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InputError(f"{name} must be a positive integer, got {number!r:.60}.")
    places = []
    for series, length in enumerate(split.lengths.tolist()):
        begin = 0 if split.starts is None else split.starts[series]
        last = length - horizon
        first = begin if begin else max(min(length // 2, last - count + 1), 1)
        if last - first + 1 < count:
            whose = "" if names is None else f" of {names[series]!r:.60}"
            raise InputError(
                f"{count} windows of {horizon} rows need at least {count + horizon - 1} rows that are held out, but "
                f"there are {max(length - max(begin, 1), 0)}{whose}; ask for fewer windows or a shorter horizon, or "
                "hold out more (--fractions, --table)."
            )
        places += [Place(series, round(origin)) for origin in np.linspace(first, last, count).tolist()]
    return Windows(schema, split, tuple(places), horizon)


def guess_season(schema: TableSchema) -> int:
    """Rows of a season by the step of time.

    Args:
        schema: How the table was read.

    Returns:
        24 for hours, 7 for days, 12 for months, 4 for quarters; else 1.
    """
    time = schema.time
    known = {("second", HOUR): 24, ("second", DAY): 7, ("month", 1.0): 12, ("month", 3.0): 4}
    return known.get((time.unit, float(time.step)), 1) if time.regular else 1
