"""`apply_schema`: a table, read as another one was, becomes sequences for the model that was made from that one."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64, Shaped

from fivo.data.budget import ENTRY_BYTES, Budget
from fivo.data.columns import first_bad, mistake
from fivo.data.foreign import shown
from fivo.data.splits import Split
from fivo.data.tables.cells import Cells, column_of, read_cells
from fivo.data.tables.layout import Layout, gaps, is_regular, lay_out
from fivo.data.tables.reading import as_table
from fivo.data.tables.schema import TableColumn, TableSchema
from fivo.errors import InputError

FAR = 5.0
"""Deviations of train that a mean may be away from that of train before it is taken for another unit."""
WIDE = 20.0
"""How much wider or narrower than in train numbers may be before they are taken for another unit."""


@dataclasses.dataclass(frozen=True)
class TableSequences:
    """The series of a table, on the model's scale.

    Args:
        schema: how the table was read.
        ids: of each series, as the table has it; `[None]` without an id column.
        sequences: frames `[T, D]` of each series; a missing entry holds 0.
        masks: `[T, D]` of each series, true where an entry was observed.
        inputs: `[T, U]` of each series; None if the schema has no inputs.
        rows: the row of the given table that each step `[T]` is; -1 for a step that only the grid has.
        times: of each step `[T]`: datetime64 for dates and times, else numbers (without a time, 0, 1, ...).
        warnings: sentences about what looks wrong, but may be right.
    """

    schema: TableSchema
    ids: list[Any]
    sequences: list[Float32[np.ndarray, "_time _dimension"]]
    masks: list[Bool[np.ndarray, "_time _dimension"]]
    inputs: list[Float32[np.ndarray, "_time _inputs"]] | None
    rows: list[Int64[np.ndarray, " _time"]]
    times: list[Shaped[np.ndarray, " _time"]]
    warnings: tuple[str, ...] = ()

    @property
    def split(self) -> Split:
        """The series as a split, for batches."""
        complete = all(mask.all() for mask in self.masks)
        inputs = None if self.inputs is None else tuple(self.inputs)
        return Split(tuple(self.sequences), None if complete else tuple(self.masks), inputs)


def apply_schema(schema: TableSchema, table: Any) -> TableSequences:
    """Read a table as another one was.

    Args:
        schema: how that one was read (`Dataset.table`).
        table: a path, or a frame of pandas, polars or pyarrow, with the columns that the schema names.

    Returns:
        Its series. A missing column, text in a number column, a new category, a time of another kind, a missing or
        double time are refused; numbers far from those of train become warnings.
    """
    frame = as_table(table)
    budget = Budget("the table")
    for column in (*schema.values, *schema.inputs, *schema.static):
        column_of(frame, column.name)
    laid = lay_out(frame, schema.id, schema.time_column, schema.time.every, budget)
    if laid.kind != schema.time.kind and "number" in (laid.kind, schema.time.kind):
        raise InputError(
            f"the time {shown(schema.time_column)} must be {schema.time.kind}s as it was in training, got {laid.kind}s."
        )
    cells = {column.name: read_cells(frame, column.name, column.kind) for column in used_columns(schema)}
    return build(schema, laid, cells, budget, (*_time_warnings(schema, laid), *_unit_warnings(schema, cells)))


def used_columns(schema: TableSchema) -> tuple[TableColumn, ...]:
    """The columns of the table that are numbers or categories."""
    return (*schema.values, *schema.inputs, *schema.static)


def build(
    schema: TableSchema, laid: Layout, cells: dict[str, Cells], budget: Budget, warnings: tuple[str, ...] = ()
) -> TableSequences:
    """The arrays of a table that was laid out."""
    steps, dimension, width = len(laid.rows), len(schema.values), len(schema.input_columns)
    budget.spend(steps * (dimension + width) * ENTRY_BYTES)
    values, mask = np.zeros((steps, dimension), np.float32), np.zeros((steps, dimension), bool)
    for index, column in enumerate(schema.values):
        given = _at_steps(_numbers(column, cells[column.name]), laid)
        mask[:, index] = ~np.isnan(given)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes infinite, which is refused
            values[:, index] = np.where(mask[:, index], (given - column.shift) / column.scale, 0)
    bad = first_bad(schema.columns, values, mask)
    if bad is not None:
        raise InputError(f"{mistake(schema.columns[bad[1]], values[bad])} in row {laid.rows[bad[0]] + 1}.")
    inputs = _inputs(schema, laid, cells, width) if width else None
    if inputs is not None and not np.isfinite(inputs).all():
        step, index = np.unravel_index(int(np.argmin(np.isfinite(inputs))), inputs.shape)
        name = schema.input_columns[int(index)].name
        raise InputError(f"the input {shown(name)} in row {laid.rows[step] + 1} is too large for single precision.")
    for array in (values, mask, inputs):
        if array is not None:
            array.setflags(write=False)
    ends = laid.offsets[1:-1]
    times = laid.times if laid.kind in ("rows", "number") else laid.times.astype("datetime64[us]")
    return TableSequences(
        schema,
        laid.ids,
        np.split(values, ends),
        np.split(mask, ends),
        None if inputs is None else np.split(inputs, ends),
        np.split(laid.rows, ends),
        np.split(times, ends),
        warnings,
    )


def _numbers(column: TableColumn, cells: Cells) -> Float[np.ndarray, " rows"]:
    """The numbers of a column, or the places of its categories; NaN where one is missing."""
    if column.kind != "category":
        return cells.numbers if cells.numbers is not None else np.full(len(cells.missing), np.nan)
    codes = cells.codes(column.categories).astype(np.float64)
    return np.where(codes < 0, np.nan, codes)


def _at_steps(by_row: Float[np.ndarray, " rows"], laid: Layout) -> Float[np.ndarray, " steps"]:
    return np.where(laid.rows >= 0, by_row[laid.rows], np.nan)


def _inputs(
    schema: TableSchema, laid: Layout, cells: dict[str, Cells], width: int
) -> Float32[np.ndarray, "steps inputs"]:
    numbers = {column.name: _numbers(column, cells[column.name]) for column in (*schema.inputs, *schema.static)}
    parts = [_encoded(column, _carried(_at_steps(numbers[column.name], laid), laid)) for column in schema.inputs]
    parts += [_encoded(column, _constant(column.name, numbers[column.name], laid)) for column in schema.static]
    if schema.gap is not None:
        found = gaps(laid, schema.time.unit)
        parts.append(_encoded(schema.gap, np.where(np.isnan(found), schema.time.step, found)))
    with np.errstate(over="ignore"):
        return np.concatenate(parts, axis=1).astype(np.float32).reshape(-1, width)


def _encoded(column: TableColumn, given: Float[np.ndarray, " steps"]) -> Float[np.ndarray, "steps _columns"]:
    """Numbers scaled, categories one-hot; what is not known is the mean of train, or no category."""
    if column.kind == "category":
        return (given[:, None] == np.arange(len(column.categories))[None, :]).astype(np.float32)
    known = np.where(np.isnan(given), column.mean, given)
    with np.errstate(over="ignore", invalid="ignore"):
        return ((known - column.shift) / column.scale)[:, None]


def _carried(given: Float[np.ndarray, " steps"], laid: Layout) -> Float[np.ndarray, " steps"]:
    """What is missing is as it was at the step before in its series."""
    steps = np.arange(len(given))
    last = np.maximum.accumulate(np.where(np.isnan(given), -1, steps))
    begin = np.repeat(laid.offsets[:-1], laid.lengths)
    return np.where(last >= begin, given[np.maximum(last, 0)], np.nan)


def _constant(name: str, by_row: Float[np.ndarray, " rows"], laid: Layout) -> Float[np.ndarray, " steps"]:
    """The one value that each series has, at each of its steps."""
    given = _at_steps(by_row, laid)
    known = np.flatnonzero(~np.isnan(given))
    first = np.full(len(laid.ids), -1)
    series = laid.series
    first[series[known][::-1]] = known[::-1]
    constant = np.where(first >= 0, given[np.maximum(first, 0)], np.nan)[series]
    other = known[given[known] != constant[known]]
    if len(other):
        step = int(other[0])
        raise InputError(
            f"the static column {shown(name)} must be the same in all rows of a series, but rows "
            f"{laid.rows[first[series[step]]] + 1} and {laid.rows[step] + 1} of {shown(laid.ids[series[step]])} "
            "differ; make it an input."
        )
    return constant


def _time_warnings(schema: TableSchema, laid: Layout) -> list[str]:
    rule = schema.time
    if rule.every is not None or rule.kind == "rows" or not rule.regular:
        return []
    found = gaps(laid, rule.unit)
    found = found[~np.isnan(found)]
    if not len(found) or is_regular(found, rule.step):
        return []
    unit = {"second": " s", "month": " months", "number": ""}[rule.unit]
    return [
        f"time must advance by {rule.step:g}{unit} as it did in training, but here it does by {found.min():g} to "
        f"{found.max():g}{unit}; the model takes all rows for one step apart."
    ]


def _unit_warnings(schema: TableSchema, cells: dict[str, Cells]) -> list[str]:
    sentences = []
    for column in used_columns(schema):
        numbers = cells[column.name].numbers
        if column.kind not in ("real", "count") or numbers is None:
            continue
        seen = numbers[~np.isnan(numbers)]
        if len(seen) < 2:
            continue
        away = abs(seen.mean() - column.mean) / column.deviation
        ratio = seen.std() / column.deviation
        if away > FAR or ratio > WIDE or 0 < ratio < 1 / WIDE:
            sentences.append(
                f"column {shown(column.name)} has mean {seen.mean():.4g} and deviation {seen.std():.4g} here, but "
                f"{column.mean:.4g} and {column.deviation:.4g} in training; is it in another unit?"
            )
    return sentences
