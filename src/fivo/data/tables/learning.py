"""`Dataset.from_table`: kinds and scales from train and valid, then the same reading as of any new table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from fivo.data.budget import Budget
from fivo.data.columns import MOST_CATEGORIES, ColumnKind, checked_column_kind, guess_kind, moments
from fivo.data.dataset import Dataset
from fivo.data.foreign import shown
from fivo.data.splits import ALL_SPLITS, Split
from fivo.data.tables.backend import Frame
from fivo.data.tables.cells import Cells, read_cells
from fivo.data.tables.layout import Layout, gaps, lay_out, time_rule
from fivo.data.tables.reading import as_table
from fivo.data.tables.roles import roles
from fivo.data.tables.schema import SplitRule, TableColumn, TableSchema, TimeRule
from fivo.data.tables.sequences import TableSequences, build
from fivo.data.tables.splitting import Bounds, bounds_of, split_rule
from fivo.errors import InputError

GUESSED_CATEGORIES = 1_000
"""More different texts than these are hardly categories; they need to be told."""
GAP = "gap"


def from_table(
    table: Any,
    *,
    id_column: str | None,
    time_column: str | None,
    values: Sequence[str] | None,
    inputs: Sequence[str],
    static: Sequence[str],
    kinds: Mapping[str, str],
    every: Any,
    split: str | None,
    fractions: Mapping[str, float] | None,
    seed: int,
    window: int | None,
    name: str | None,
) -> Dataset:
    """What `Dataset.from_table` documents."""
    path = Path(table) if isinstance(table, str | Path) else None
    frame = as_table(table)
    budget = Budget("the table" if path is None else path)
    if window is not None and (not isinstance(window, int) or window < 1):
        raise InputError(f"`window` must be a positive number of steps, got {window!r:.40}.")
    chosen = roles(frame, id_column, time_column, values, inputs, static, split)
    told = _told(kinds, [*chosen["values"], *chosen["inputs"], *chosen["static"]])
    grid = None if every is None else str(every)
    laid = lay_out(frame, id_column, time_column, grid, budget)
    rule = split_rule(split, fractions, seed, laid)
    bounds = bounds_of(rule, laid, frame)
    schema, cells = _learn(frame, laid, bounds, chosen, told, time_rule(laid, grid), rule, id_column, time_column)
    read = build(schema, laid, cells, budget)
    splits = {part: cut(read, bounds, part, window) for part in ALL_SPLITS}
    if not len(splits["calibrate"]):
        del splits["calibrate"]
    called = name or ("table" if path is None else path.name.split(".")[0] or path.name)
    return Dataset(called, splits, schema.columns, schema.input_columns, table=schema)


def _told(kinds: Mapping[str, str], names: list[str]) -> dict[str, ColumnKind]:
    unknown = [name for name in kinds if name not in names]
    if unknown:
        raise InputError(f"`kinds` must be for columns that are used, got {shown(unknown[0])}.")
    return {name: checked_column_kind(kind, name) for name, kind in kinds.items()}


def _learn(
    frame: Frame,
    laid: Layout,
    bounds: Bounds,
    chosen: dict[str, list[str]],
    told: dict[str, ColumnKind],
    time: TimeRule,
    rule: SplitRule,
    id_column: str | None,
    time_column: str | None,
) -> tuple[TableSchema, dict[str, Cells]]:
    """Scales from train alone; kinds and categories from train and valid."""
    position, series = laid.positions, laid.series
    known, there = position < bounds[series, 2], laid.rows >= 0
    train = position < bounds[series, 1]
    train_rows, known_rows = (np.zeros(frame.height, bool) for _ in range(2))
    train_rows[laid.rows[train & there]] = True
    known_rows[laid.rows[known & there]] = True
    cells = {name: read_cells(frame, name, told.get(name)) for group in chosen.values() for name in group}
    columns = {
        use: tuple(_column(cells[name], told.get(name), train_rows, known_rows, use == "values") for name in names)
        for use, names in chosen.items()
    }
    gap = None if time.regular else _gap(gaps(laid, time.unit)[train], time, [*cells])
    sizes = np.diff(bounds, axis=1)
    counted = {part: k for k, part in enumerate(ALL_SPLITS) if sizes[:, k].any()}
    schema = TableSchema(
        columns["values"],
        time=time,
        split=rule,
        inputs=columns["inputs"],
        static=columns["static"],
        gap=gap,
        id=id_column,
        time_column=time_column,
        rows={part: int(sizes[:, k].sum()) for part, k in counted.items()},
        series={part: int((sizes[:, k] > 0).sum()) for part, k in counted.items()},
    )
    return schema, cells


def _column(
    cells: Cells,
    told: ColumnKind | None,
    train: Bool[np.ndarray, " rows"],
    known: Bool[np.ndarray, " rows"],
    is_value: bool,
) -> TableColumn:
    if cells.numbers is None or told == "category":
        return _category(cells, told, train, known)
    seen = cells.numbers[known & ~cells.missing]
    of_train = cells.numbers[train & ~cells.missing]
    if not len(of_train):
        raise InputError(f"column {shown(cells.name)} must have a value in train, but all are missing; leave it out.")
    kind = told or guess_kind(seen)
    mean, deviation = (float(x[0]) for x in moments([of_train[:, None]], None))
    if not (np.isfinite(mean) and np.isfinite(deviation)):
        raise InputError(f"column {shown(cells.name)} must hold numbers whose squares are finite; rescale it.")
    scaled = kind == "real" or (kind == "count" and not is_value)
    return TableColumn(
        cells.name,
        "real" if scaled else kind,
        mean if scaled else 0.0,
        deviation if scaled else 1.0,
        mean=mean,
        deviation=deviation,
    )


def _category(cells: Cells, told: ColumnKind | None, train: np.ndarray, known: np.ndarray) -> TableColumn:
    labels = cells.labels
    if not (train & ~cells.missing).any():
        raise InputError(f"column {shown(cells.name)} must have a value in train, but all are missing; leave it out.")
    found = labels.filter(known).drop_nulls().unique().sort().to_list()
    most = GUESSED_CATEGORIES if told is None else MOST_CATEGORIES
    if len(found) > most:
        raise InputError(
            f"column {shown(cells.name)} holds {len(found):,} different texts, such as {shown(found[0])}, more than "
            f"{most:,} categories; leave it out, or write its numbers with a decimal point."
        )
    if cells.numbers is not None:
        found.sort(key=float)
    return TableColumn(cells.name, "category", categories=tuple(found))


def _gap(found: Float[np.ndarray, " _steps"], time: TimeRule, names: list[str]) -> TableColumn:
    if GAP in names:
        raise InputError(
            f"the time of this table is irregular, so the time between rows becomes an input {GAP!r}, but a column has "
            "that name; rename it."
        )
    filled = np.where(np.isnan(found), time.step, found)
    mean, deviation = (float(x[0]) for x in moments([filled[:, None]], None))
    return TableColumn(GAP, "real", mean, deviation, mean=mean, deviation=deviation)


def cut(read: TableSequences, bounds: Bounds, part: str, window: int | None) -> Split:
    """The sequences of a split, each with the earlier steps of its series as context."""
    k = ALL_SPLITS.index(part)
    pieces: list[tuple[int, int, int, int]] = []  # series, first step, last step, first scored step
    for series in np.flatnonzero(bounds[:, k + 1] > bounds[:, k]).tolist():
        start, end = int(bounds[series, k]), int(bounds[series, k + 1])
        if part == "train" and window is not None:
            pieces += [(series, begin, min(begin + window, end), 0) for begin in range(start, end, window)]
        else:
            pieces.append((series, 0, end, start))
    return Split(
        tuple(read.sequences[i][a:b] for i, a, b, _ in pieces),
        tuple(read.masks[i][a:b] for i, a, b, _ in pieces),
        None if read.inputs is None else tuple(read.inputs[i][a:b] for i, a, b, _ in pieces),
        tuple(start for *_, start in pieces),
    )
