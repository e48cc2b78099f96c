"""Results of every step as columns of a table, in the user's units."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from fivo.data import TableColumn, TableSchema, TableSequences

Frame = Any
"""A polars.DataFrame."""


def by_row(frame: Frame, seen: TableSequences, columns: dict[str, Any]) -> dict[str, Any]:
    """Values of every step at the rows that they are of; empty where a row has none.

    Args:
        frame: The table that was read.
        seen: Its series.
        columns: Values by name, one for every step of all series, one series after the other.
    """
    import polars as pl

    rows = np.concatenate(seen.rows)
    there = rows >= 0
    made = {}
    for name, values in columns.items():
        whole = np.full(frame.height, np.nan)
        whole[rows[there]] = np.asarray(values, np.float64)[there]
        made[name] = pl.Series(name, whole).fill_nan(None)
    return made


def filled(frame: Frame, seen: TableSequences, schema: TableSchema, columns: dict[str, Any]) -> Frame:
    """The table with its empty cells filled, and further columns.

    Args:
        frame: The table that was read.
        seen: Its series.
        schema: How it was read.
        columns: For every value column what fills its empty cells, by its name, and others.
    """
    import polars as pl

    new = by_row(frame, seen, columns)
    for column in schema.values:
        found, given = new.pop(column.name), frame.get_column(column.name)
        if column.kind == "category":
            places = found.fill_null(-1).to_numpy().astype(int)
            found = pl.Series(column.name, [None if p < 0 else column.categories[p] for p in places], dtype=pl.String)
            given = given.cast(pl.String)
        if given.dtype == pl.String:
            found = found.cast(pl.String)
            given = pl.Series(column.name, [None if v is None or not v.strip() else v for v in given], dtype=pl.String)
        frame = frame.with_columns(pl.coalesce(given, found).alias(column.name))
    return frame.with_columns(**new)


def restored(column: TableColumn, values: Any) -> Any:
    """Numbers of the model's scale in the user's units."""
    return np.asarray(values, np.float64) * column.scale + column.shift


def centre(column: TableColumn, samples: Float[np.ndarray, "sample row"]) -> Float[np.ndarray, " row"]:
    """The mean in the user's units, or the number of the most frequent category."""
    if column.kind != "category":
        return restored(column, samples).mean(axis=0)
    shares = np.stack([(samples == k).mean(axis=0) for k in range(len(column.categories))])
    return shares.argmax(axis=0).astype(float)


def value_columns(schema: TableSchema, mean: Any, quantile: Any, levels: Sequence[float]) -> dict[str, Any]:
    """`y_mean` and `y_q0.1`, ... of every value but categories, from [row, dim] and [row, quantile, dim]."""
    columns: dict[str, Any] = {}
    for place, column in enumerate(schema.values):
        if column.kind == "category":
            continue
        columns[f"{column.name}_mean"] = restored(column, mean[:, place])
        for index, level in enumerate(levels):
            columns[f"{column.name}_q{level:g}"] = restored(column, quantile[:, index, place])
    return columns


def state_columns(mean: Any, quantile: Any, levels: Sequence[float]) -> dict[str, Any]:
    """`state0_mean`, `state0_q0.1`, ... from [row, latent] and [row, quantile, latent]."""
    columns: dict[str, Any] = {}
    for place in range(mean.shape[1]):
        columns[f"state{place}_mean"] = mean[:, place]
        for index, level in enumerate(levels):
            columns[f"state{place}_q{level:g}"] = quantile[:, index, place]
    return columns


def raw_offsets(schema: TableSchema, seen: TableSequences) -> Float[np.ndarray, " row"]:
    """What to add to a row's log-density on the model's scale to have that in the user's units."""
    costs = np.array([np.log(column.scale) for column in schema.values])
    return -(np.concatenate(seen.masks) * costs).sum(axis=1)


def normal_quantiles(mean: Any, deviation: Any, levels: Sequence[float]) -> Any:
    """Quantiles of normals, on a new axis before the last."""
    return mean[..., None, :] + deviation[..., None, :] * ndtri(np.asarray(levels))[:, None]
