"""Forecasts: draws of the rows that follow each series, in the user's units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from fivo.data import TableSchema, TableSequences, apply_schema, as_table, times_after
from fivo.errors import InputError
from fivo.inference.context import Context
from fivo.inference.results import Result, frame_of, labelled
from fivo.inference.rowwise import restored
from fivo.report import Track, plot_forecast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOTTED = (0.025, 0.1, 0.25, 0.75, 0.9, 0.975)
HISTORY = 4
"""Times the horizon that a plot shows of the rows before it."""


@dataclass(frozen=True, repr=False)
class Forecast(Result):
    """Draws of the rows that follow each series.

    Args:
        context: The series.
        levels: The quantiles that `to_frame` gives.
        model_samples: Draws on the model's scale.
        future: Times [horizon] of the rows of each series that were given with their inputs; None if none were.
    """

    model_samples: Float[np.ndarray, "series sample horizon dim"]
    future: list[np.ndarray] | None = None

    @property
    def samples(self) -> Float[np.ndarray, "series sample horizon dim"]:
        """The draws in the user's units; categories as their numbers."""
        columns = self.context.schema.values
        return np.stack([restored(c, self.model_samples[..., i]) for i, c in enumerate(columns)], axis=-1)

    @property
    def mean(self) -> Float[np.ndarray, "series horizon dim"]:
        """The average draw."""
        return self.samples.mean(axis=1)

    def quantile(self, level: float) -> Float[np.ndarray, "series horizon dim"]:
        """The value that a share of `level` of the draws lies below.

        Args:
            level: From 0 to 1.

        Returns:
            An array [series, horizon, dim].
        """
        if not 0 <= level <= 1:
            raise InputError(f"a quantile's level must be from 0 to 1, got {level!r:.40}.")
        return np.quantile(self.samples, level, axis=1)

    @property
    def times(self) -> list[np.ndarray]:
        """The times [horizon] of the rows of each series: those given with the inputs, else continued by its step."""
        if self.future is not None:
            return self.future
        rule, horizon = self.context.schema.time, self.model_samples.shape[2]
        return [times_after(rule, times[-1], horizon) for times in self.context.seen.times]

    def to_frame(self) -> Any:
        """The forecast as a table.

        Returns:
            A frame of the kind that was given, with a row for each series and step: id, time, and `y_mean`, `y_q0.1`,
            ... for every value `y`; `y_mode` and its `y_share` of the draws where `y` is a category.
        """
        schema, ids = self.context.schema, self.context.id_columns
        count, _, horizon, _ = self.model_samples.shape
        columns: dict[str, Any] = {name: [i for i in given for _ in range(horizon)] for name, given in ids.items()}
        times = np.concatenate(self.times)
        whole = times.dtype.kind == "f" and (times == np.rint(times)).all()
        columns[schema.time_column or "step"] = times.astype(np.int64) if whole else times
        samples = self.samples
        for place, column in enumerate(schema.values):
            drawn = samples[..., place]
            if column.kind == "category":
                shares = np.stack([(drawn == k).mean(axis=1) for k in range(len(column.categories))], axis=-1)
                best = shares.argmax(axis=-1).reshape(count * horizon)
                columns[f"{column.name}_mode"] = [column.categories[k] for k in best]
                columns[f"{column.name}_share"] = shares.max(axis=-1).reshape(count * horizon)
                continue
            columns[f"{column.name}_mean"] = drawn.mean(axis=1).reshape(-1)
            for level in self.levels:
                columns[f"{column.name}_q{level:g}"] = np.quantile(drawn, level, axis=1).reshape(-1)
        return self.context.returned(frame_of(columns))

    def to_xarray(self) -> Any:
        """Labelled arrays.

        Returns:
            The draws as an `xarray.Dataset` with dimensions series, sample and step, one variable for each value.
        """
        samples, over = self.samples, ("series", "sample", "step")
        variables = {c.name: (over, samples[..., i]) for i, c in enumerate(self.context.schema.values)}
        return labelled(variables, series=self.ids, step=np.arange(1, samples.shape[2] + 1))

    def plot(self, series: Sequence[Any] | None = None, *, title: str = "") -> "Figure":
        """Fan charts of 50, 80 and 95 % intervals after the last rows seen.

        Args:
            series: The ids of the series to show; by default the first few.
            title: Of the figure.

        Returns:
            A matplotlib figure.
        """
        return plot_forecast(self.tracks(series), time_label=self.time_label, title=title)

    def tracks(self, series: Sequence[Any] | None = None) -> list[Track]:
        """What `plot` draws.

        Args:
            series: The ids of the series to show; by default those that `plot` shows.

        Returns:
            A track for each series and value.
        """
        samples, horizon = self.samples, self.model_samples.shape[2]
        found = []
        for place in self._chosen(series):
            begin = max(0, len(self.context.seen.times[place]) - max(HISTORY * horizon, 20))
            past, observed = self.context.seen.times[place][begin:], self._observed(place)[begin:]
            times = np.concatenate([past, self.times[place].astype(past.dtype)])
            before, after = np.full(len(past), np.nan), np.full(horizon, np.nan)
            for i, column in self._plotted:
                drawn = samples[place, :, :, i]
                levels = {q: np.append(before, np.quantile(drawn, q, axis=0)) for q in PLOTTED}
                mean = np.append(before, drawn.mean(axis=0))
                found.append(
                    Track(self._label(place), column.name, times, np.append(observed[:, i], after), mean, levels)
                )
        return found

    def __repr__(self) -> str:
        count, draws, horizon, _ = self.model_samples.shape
        values = ", ".join(column.name for column in self.context.schema.values)
        return f"Forecast({count} series, {horizon} steps of {values}, {draws} draws)"


class Future(NamedTuple):
    """What is known of the rows to come."""

    inputs: Float[np.ndarray, "series horizon input"] | None
    times: list[np.ndarray] | None = None
    """Of each series; None if they were not given."""


def future_of(context: Context, horizon: int, given: Any) -> Future:
    """The inputs of the rows to come and their times: from a table or an array, or what is known without one.

    Args:
        context: The series so far.
        horizon: How many rows are to come.
        given: A table with them for a context that is a table, else an array [series, horizon, input]; None if none
            was given.
    """
    schema, seen = context.schema, context.seen
    if context.table is None:
        if given is None and seen.inputs is not None:
            raise InputError(
                f"the series have inputs, so a forecast needs those of the next {horizon} rows: an array [series, "
                "horizon, input]; give it as `inputs`."
            )
        return Future(None if given is None else np.asarray(given))
    if not schema.input_columns or seen.inputs is None:
        return Future(None)
    if not schema.inputs and given is None:  # static inputs stay as they were, and the next rows are one step apart
        last = np.stack([u[-1] for u in seen.inputs])
        if schema.gap is not None:
            last[:, -1] = (schema.time.step - schema.gap.shift) / schema.gap.scale
        return Future(np.repeat(last[:, None], horizon, axis=1))
    if given is None:
        names = ", ".join(column.name for column in schema.inputs)
        raise InputError(
            f"the model reads {names}, so a forecast needs a table with them for the next {horizon} rows of every "
            "series; give it with --inputs-from (`inputs`)."
        )
    return _from_table(schema, seen, horizon, given)


def _from_table(schema: TableSchema, seen: TableSequences, horizon: int, table: Any) -> Future:
    """From a path or a frame with the id, time and input columns; values may be left out."""
    import polars as pl

    frame = as_table(table)
    for column in schema.values:
        if column.name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(column.name))
    later = apply_schema(schema, frame)
    found = dict(zip(map(str, later.ids), zip(later.times, later.inputs or [], strict=True), strict=True))
    inputs, ahead = [], []
    for name, known in zip(seen.ids, seen.times, strict=True):
        times, rows = found.get(str(name), (known[:0], np.zeros((0, len(schema.input_columns)))))
        if schema.time_column is not None:
            after = np.asarray(times) > known[-1]
            times, rows = times[after], rows[after]
        whose = "" if name is None else f" of {name!r:.60}"
        if len(rows) < horizon:
            raise InputError(
                f"a forecast of {horizon} rows needs the inputs of as many rows{whose} after the last one that was "
                f"seen, but --inputs-from has {len(rows)}."
            )
        times, rows = times[:horizon], rows[:horizon].copy()
        if schema.time.regular and schema.time_column is not None:
            due = times_after(schema.time, known[-1], horizon)
            wrong = np.flatnonzero(~_equal(times, due))
            if len(wrong):
                raise InputError(
                    f"--inputs-from must go on where the series{whose} ends, one step after the other, but where "
                    f"{shown_time(due[wrong[0]])} was due it has {shown_time(times[wrong[0]])}."
                )
        if schema.gap is not None:  # of the first row to come, the gap is that since the last row seen
            gap = times[0] - known[-1]
            gap = gap / np.timedelta64(1, "s") if isinstance(gap, np.timedelta64) else float(gap)
            rows[0, -1] = (gap - schema.gap.shift) / schema.gap.scale
        inputs.append(rows)
        ahead.append(times)
    return Future(np.stack(inputs), None if schema.time_column is None else ahead)


def _equal(times: np.ndarray, due: np.ndarray) -> np.ndarray:
    if times.dtype.kind == "M":
        return times == due.astype(times.dtype)
    return np.isclose(times, due, rtol=1e-9, atol=1e-6)


def shown_time(time: Any) -> str:
    """A time as a person writes it."""
    return f"{time:g}" if isinstance(time, float) else str(time).replace("T", " ").removesuffix(".000000")
