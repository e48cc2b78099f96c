"""One row at a time, read as a whole table would be: `RowReader` makes steps for a model from mappings of cells."""

import dataclasses
import datetime
import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32

from fivo.data.columns import first_bad, mistake, scaling_of
from fivo.data.foreign import shown
from fivo.data.tables.cells import LARGEST_TIME, MISSING
from fivo.data.tables.layout import parse_every
from fivo.data.tables.schema import TableColumn, TableSchema
from fivo.errors import InputError

MOST_EMPTY = 10_000
"""Steps of the grid that may be empty between two rows of a stream."""
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - microseconds are counted in UTC
_MICROSECOND = datetime.timedelta(microseconds=1)


class RowStep(NamedTuple):
    """A step for the model: a row on its scale, or an empty step of the grid.

    Args:
        values: On the model's scale [dim]; zero where missing.
        mask: True where an entry was observed [dim].
        inputs: On the model's scale [input]; None without inputs.
    """

    values: Float32[np.ndarray, " dimension"]
    mask: Bool[np.ndarray, " dimension"]
    inputs: Float32[np.ndarray, " inputs"] | None


@dataclasses.dataclass(frozen=True)
class RowPast:
    """What reading the next row of a series needs of those before.

    Args:
        time: of the last row: a number, or microseconds since 1970; None before the first, or without a time.
        carried: the last known number of each input (the place of a category); None where there was none.
        static: the same of each static column.
    """

    time: float | int | None
    carried: tuple[float | None, ...]
    static: tuple[float | None, ...]


class RowReader:
    """Reads rows of one table's columns, each a mapping of names to cells.

    Args:
        schema: How the table was read that the model was trained on.
    """

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self._columns = schema.columns
        self._shift, self._scale = scaling_of(self._columns)
        self._codes = {
            column.name: {label: place for place, label in enumerate(column.categories)}
            for column in (*schema.values, *schema.inputs, *schema.static)
            if column.kind == "category"
        }
        every = schema.time.every
        self._grid = None if every is None else parse_every(every, schema.time.kind)

    def id_of(self, row: Mapping[str, Any]) -> str:
        """Which series a row belongs to.

        Args:
            row: The cells by their columns' names.

        Returns:
            The id as text; empty without an id column.
        """
        name = self.schema.id
        if name is None:
            return ""
        given = _cell(row, name)
        if isinstance(given, bool | float | np.floating) and given == given:
            raise InputError(f"the id {shown(name)} must be a text or a whole number, got {given!r:.60}.")
        text = str(given).strip()
        if given is None or given != given or text.lower() in MISSING:
            raise InputError(f"the id {shown(name)} must be in every row, but it is missing.")
        return text

    def read(self, row: Mapping[str, Any], past: RowPast | None) -> tuple[list[RowStep], RowPast]:
        """The steps that a row means: itself, and before it the empty steps of the grid since the row before.

        Args:
            row: The cells by their columns' names; None, NaN and "" are missing.
            past: What the last row of the series left; None for its first.

        Returns:
            The steps, and what the row leaves for the next one.
        """
        schema = self.schema
        time = self._time(row)
        since = None if past is None or time is None or past.time is None else self._advanced(past.time, time)
        dimension = len(schema.values)
        given = np.array([self._number(column, row) for column in schema.values])
        mask = ~np.isnan(given)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes infinite, which is refused
            values = np.where(mask, (given - self._shift) / self._scale, 0).astype(np.float32)
        bad = first_bad(self._columns, values[None], mask[None])
        if bad is not None:
            raise InputError(f"{mistake(self._columns[bad[1]], values[bad[1]])}.")
        before = past or RowPast(None, (None,) * len(schema.inputs), (None,) * len(schema.static))
        carried = tuple(
            old if math.isnan(new) else new
            for old, new in zip(before.carried, (self._number(c, row) for c in schema.inputs), strict=True)
        )
        static = tuple(self._constant(c, old, row) for c, old in zip(schema.static, before.static, strict=True))
        steps = []
        if self._grid is not None and since is not None:
            blank = RowStep(np.zeros(dimension, np.float32), np.zeros(dimension, bool), None)
            blank = blank._replace(inputs=self._inputs(before.carried, static, None))
            steps = [blank] * (int(since) - 1)
        steps.append(RowStep(values, mask, self._inputs(carried, static, since)))
        return steps, RowPast(time, carried, static)

    def gap_warning(self, before: float | int | None, time: float | int | None) -> str | None:
        """Notice a row that a table of regular times has at another distance from the one before.

        Args:
            before: The time of the row before; None for the first.
            time: The time of the row.

        Returns:
            A sentence, or None if nothing is unusual.
        """
        rule = self.schema.time
        if before is None or time is None or rule.every is not None or not rule.regular:
            return None
        found = self._distance(before, time)
        if abs(found - rule.step) <= 1e-6 * rule.step:
            return None
        unit = {"second": " s", "month": " months", "number": ""}[rule.unit]
        return (
            f"time must advance by {rule.step:g}{unit} as it did in training, but here it does by {found:g}{unit}; the "
            "model takes all rows for one step apart."
        )

    def _number(self, column: TableColumn, row: Mapping[str, Any]) -> float:
        """A number, or the place of a category; NaN if it is missing."""
        given = _cell(row, column.name)
        return _number(column.name, given) if column.kind != "category" else self._code(column, given)

    def _code(self, column: TableColumn, given: Any) -> float:
        if given is None or given != given:
            return math.nan
        if isinstance(given, numbers.Real):
            whole = float(given)
            label = str(int(whole)) if whole.is_integer() else str(whole)
        else:
            label = str(given).strip()
            if label.lower() in MISSING:
                return math.nan
        place = self._codes[column.name].get(label)
        if place is None:
            known = ", ".join(shown(label) for label in column.categories[:5])
            raise InputError(
                f"column {shown(column.name)} holds the category {shown(label)}, but only {known}"
                f"{', …' if len(column.categories) > 5 else ''} were known when the model was made."
            )
        return float(place)

    def _constant(self, column: TableColumn, old: float | None, row: Mapping[str, Any]) -> float | None:
        new = self._number(column, row)
        if math.isnan(new):
            return old
        if old is not None and new != old:
            raise InputError(
                f"the static column {shown(column.name)} must be the same in all rows of a series, but it has changed."
            )
        return new

    def _inputs(
        self, carried: tuple, static: tuple, since: float | int | None
    ) -> Float32[np.ndarray, " inputs"] | None:
        schema = self.schema
        parts: list[float] = []
        for column, known in zip((*schema.inputs, *schema.static), (*carried, *static), strict=True):
            if column.kind == "category":
                parts += [float(known == place) for place in range(len(column.categories))]
            else:
                parts.append(((column.mean if known is None else known) - column.shift) / column.scale)
        if schema.gap is not None:
            gap = schema.time.step if since is None else since
            parts.append((gap - schema.gap.shift) / schema.gap.scale)
        if not parts:
            return None
        with np.errstate(over="ignore"):
            made = np.array(parts).astype(np.float32)
        if not np.isfinite(made).all():
            name = schema.input_columns[int(np.argmin(np.isfinite(made)))].name
            raise InputError(f"the input {shown(name)} is too large for single precision.")
        return made

    def _time(self, row: Mapping[str, Any]) -> float | int | None:
        name, kind = self.schema.time_column, self.schema.time.kind
        if name is None:
            return None
        given = _cell(row, name)
        if given is None or given != given or (isinstance(given, str) and given.strip().lower() in MISSING):
            raise InputError(f"the time {shown(name)} must be in every row, but it is missing.")
        time = _plain_time(given) if kind == "number" else _moment(given)
        if time is None:
            like = "a number" if kind == "number" else "a date or a time, like 2024-01-31 or 2024-01-31 12:00:00"
            raise InputError(f"the time {shown(name)} must be {like}, as it was in training, got {shown(given)}.")
        if abs(time) > LARGEST_TIME and kind == "number":
            raise InputError(f"the time {shown(name)} must be from -2^53 to 2^53, got {time:g}.")
        return time

    def _advanced(self, before: float | int, time: float | int) -> float | int:
        """How far a row is from the one before: in steps of the grid, or in the unit of the schema's time."""
        name = self.schema.time_column
        if time <= before:
            how = "the same time as" if time == before else "earlier than"
            raise InputError(
                f"rows of a series must come in the order of time, but this one's {shown(name)} is {how} that of the "
                "row before; give rows in order, once."
            )
        if self._grid is None:
            return self._distance(before, time)
        steps = self._cell_of(time) - self._cell_of(before)
        if steps == 0:
            raise InputError(
                f"at most one row of a series may fall into a step of the grid of {self.schema.time.every}, but this "
                "one and the row before do; average such rows first."
            )
        if steps > MOST_EMPTY:
            raise InputError(
                f"a row may be at most {MOST_EMPTY:,} steps of the grid of {self.schema.time.every} after the one "
                f"before, got {steps:,}; start a new series."
            )
        return steps

    def _distance(self, before: float | int, time: float | int) -> float | int:
        unit = self.schema.time.unit
        if unit == "month":
            return _month(time) - _month(before)
        return (time - before) / 1e6 if unit == "second" else time - before

    def _cell_of(self, time: float | int) -> int:
        step, unit = self._grid or (1, "number")
        if unit == "number":
            return math.floor(time / step + 1e-9)
        return int((_month(time) if unit == "month" else time) // step)


def _cell(row: Mapping[str, Any], name: str) -> Any:
    if not isinstance(row, Mapping):
        raise InputError(f"a row must be a mapping of columns to cells, got {type(row).__name__}.")
    if name not in row:
        have = ", ".join(shown(column) for column in list(row)[:8]) + (", …" if len(row) > 8 else "")
        raise InputError(f"the row must have a cell {shown(name)}, None if it is missing, but it has {have}.")
    return row[name]


def _number(name: str, given: Any) -> float:
    if given is None:
        return math.nan
    if isinstance(given, numbers.Real | np.bool_):
        number = float(given)
    else:
        text = given.strip() if isinstance(given, str) else None
        if text is not None and text.lower() in MISSING:
            return math.nan
        try:
            number = math.nan if text is None or "_" in text else float(text)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise InputError(
                f"column {shown(name)} holds numbers, so every cell of it must be one or empty, got {shown(given)}."
            )
    if math.isinf(number):
        raise InputError(f"column {shown(name)} must hold finite numbers, got {number:g}.")
    return number


def _plain_time(given: Any) -> float | None:
    if isinstance(given, str):
        try:
            given = float(given)
        except ValueError:
            return None
    usable = isinstance(given, numbers.Real) and not isinstance(given, bool) and math.isfinite(given)
    return float(given) if usable else None


def _moment(given: Any) -> int | None:
    """Microseconds since 1970, in UTC; None for anything that is not a date or time."""
    if isinstance(given, np.datetime64):
        return int(given.astype("datetime64[us]").astype(np.int64))
    if isinstance(given, str):
        text = given.strip().replace("/", "-")
        if text[4:5] != "-" or "W" in text:
            return None
        try:
            given = datetime.datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
        except ValueError:
            return None
    if isinstance(given, datetime.datetime):
        if given.tzinfo is not None:
            given = given.astimezone(datetime.UTC).replace(tzinfo=None)
        return (given - _EPOCH) // _MICROSECOND
    if isinstance(given, datetime.date):
        return (given - _EPOCH.date()) // _MICROSECOND
    return None


def _month(time: float | int) -> int:
    return int(np.datetime64(int(time), "us").astype("datetime64[M]").astype(np.int64))
