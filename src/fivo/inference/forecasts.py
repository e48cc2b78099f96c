"""Forecasts of tables: draws of the rows that follow each series, in the user's units."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fivo.data import TableSchema, TableSequences, apply_schema, as_table
from fivo.errors import InputError
from fivo.extras import require
from fivo.inference.rowwise import Frame, frame_of, restored


@dataclass(frozen=True)
class Forecast:
    """Draws of the rows that follow each series, in the user's units.

    Args:
        schema: How the table was read.
        ids: The id column, one entry for each series; empty without one.
        times: The times of the rows [horizon] of each series.
        model_samples: Draws on the model's scale [series, sample, horizon, dim].
        levels: Quantiles that `to_frame` gives.
    """

    schema: TableSchema
    ids: dict[str, Any]
    times: list[Any]
    model_samples: Float[np.ndarray, "series sample horizon dim"]
    levels: tuple[float, ...]

    @property
    def samples(self) -> Float[np.ndarray, "series sample horizon dim"]:
        """The draws; categories as their numbers."""
        columns = self.schema.values
        return np.stack([restored(c, self.model_samples[..., i]) for i, c in enumerate(columns)], axis=-1)

    @property
    def mean(self) -> Float[np.ndarray, "series horizon dim"]:
        """The average draw."""
        return self.samples.mean(axis=1)

    def quantile(self, level: float) -> Float[np.ndarray, "series horizon dim"]:
        """The value that a share of `level` of the draws lies below."""
        return np.quantile(self.samples, level, axis=1)

    def to_frame(self) -> Frame:
        """One row for each series and step: id, time, and `y_mean`, `y_q0.1`, ... for every value `y`."""
        count, _, horizon, _ = self.model_samples.shape
        columns: dict[str, Any] = {name: [i for i in ids for _ in range(horizon)] for name, ids in self.ids.items()}
        times = np.concatenate(self.times)
        whole = times.dtype.kind == "f" and (times == np.rint(times)).all()
        columns[self.schema.time_column or "step"] = times.astype(np.int64) if whole else times
        samples = self.samples
        for place, column in enumerate(self.schema.values):
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
        return frame_of(columns)

    def to_xarray(self) -> Any:
        """The draws as an `xarray.Dataset` with dimensions series, sample and step, one variable for each value."""
        xarray = require("xarray", "labelled results")
        names = next(iter(self.ids.values()), list(range(len(self.model_samples))))
        samples = self.samples
        data = {c.name: (("series", "sample", "step"), samples[..., i]) for i, c in enumerate(self.schema.values)}
        return xarray.Dataset(data, coords={"series": list(names), "step": np.arange(1, samples.shape[2] + 1)})

    def __repr__(self) -> str:
        count, draws, horizon, _ = self.model_samples.shape
        values = ", ".join(column.name for column in self.schema.values)
        return f"Forecast({count} series, {horizon} steps of {values}, {draws} draws)"


def future_inputs(
    schema: TableSchema, seen: TableSequences, horizon: int, table: Any
) -> Float[np.ndarray, "series horizon input"]:
    """The inputs of the rows to come, from a table that has them for every series.

    Args:
        schema: How the table was read that the model was trained on.
        seen: The series so far.
        horizon: How many rows are to come.
        table: A path or a frame with the id, time and input columns; values may be left out.
    """
    import polars as pl

    frame = as_table(table)
    for column in schema.values:
        if column.name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(column.name))
    later = apply_schema(schema, frame)
    found = dict(zip(map(str, later.ids), zip(later.times, later.inputs or [], strict=True), strict=True))
    inputs = []
    for name, times in zip(seen.ids, seen.times, strict=True):
        rows = found.get(str(name))
        last = times[-1]
        if rows is not None and schema.time_column is not None:
            after = np.asarray(rows[0]) > last
            rows = rows[0][after], rows[1][after]
        if rows is None or len(rows[1]) < horizon:
            have = 0 if rows is None else len(rows[1])
            whose = "" if name is None else f" of {name!r:.60}"
            raise InputError(
                f"a forecast of {horizon} rows needs the inputs of as many rows{whose} after the last one that was "
                f"seen, but --inputs-from has {have}."
            )
        inputs.append(rows[1][:horizon])
    return np.stack(inputs)
