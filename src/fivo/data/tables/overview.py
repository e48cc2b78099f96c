"""What a table holds, before anything is trained on it."""

import dataclasses
from typing import Any

import numpy as np

from fivo.data.budget import Budget
from fivo.data.columns import guess_kind
from fivo.data.tables.cells import Cells, read_cells
from fivo.data.tables.layout import lay_out, time_rule
from fivo.data.tables.reading import as_table
from fivo.data.tables.roles import roles
from fivo.data.tables.schema import TimeRule


@dataclasses.dataclass(frozen=True)
class ColumnOverview:
    """What is in a column of a table.

    Args:
        name: The column.
        use: What it is used as: id, time, value, input or static.
        kind: Its guessed kind.
        missing: How many cells are missing.
        lowest: The smallest number; None for categories.
        highest: The largest number.
        mean: The average.
        categories: The texts that occur, for categories.
    """

    name: str
    use: str
    kind: str
    missing: int
    lowest: float | None = None
    highest: float | None = None
    mean: float | None = None
    categories: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TableOverview:
    """What is in a table.

    Args:
        rows: How many rows it has.
        lengths: The rows of each series.
        time: How time is read.
        begin: The first time, as written in the table.
        end: The last time.
        columns: What is in each column.
    """

    rows: int
    lengths: tuple[int, ...]
    time: TimeRule
    begin: Any
    end: Any
    columns: tuple[ColumnOverview, ...]


def check_table(
    table: Any,
    *,
    id: str | None = None,
    time: str | None = None,
    values: Any = None,
    inputs: Any = (),
    static: Any = (),
) -> TableOverview:
    """Read a table as `Dataset.from_table` does and say what is in it.

    Args:
        table: a path, or a pandas, polars or pyarrow frame.
        id: the column that says which series a row belongs to.
        time: the column of time.
        values: the columns to be modelled, by default all others.
        inputs: columns that are known and not modelled.
        static: columns that are the same in all rows of a series.

    Returns:
        What is in it.
    """
    frame = as_table(table)
    chosen = roles(frame, id, time, values, inputs, static, None)
    laid = lay_out(frame, id, time, None, Budget("the table"))
    columns = tuple(
        _overview(read_cells(frame, name), use.removesuffix("s")) for use, names in chosen.items() for name in names
    )
    begin = end = None
    if time is not None:
        first, last = int(np.argmin(laid.times)), int(np.argmax(laid.times))
        begin, end = (frame.get_column(time)[int(laid.rows[step])] for step in (first, last))
    return TableOverview(frame.height, tuple(laid.lengths.tolist()), time_rule(laid, None), begin, end, columns)


def _overview(cells: Cells, use: str) -> ColumnOverview:
    missing = int(cells.missing.sum())
    if cells.numbers is None:
        found = cells.labels.drop_nulls().unique().sort()
        return ColumnOverview(cells.name, use, "category", missing, categories=tuple(found.head(1_001).to_list()))
    seen = cells.numbers[~cells.missing]
    if not len(seen):
        return ColumnOverview(cells.name, use, "empty", missing)
    return ColumnOverview(
        cells.name, use, guess_kind(seen), missing, float(seen.min()), float(seen.max()), float(seen.mean())
    )
