"""Which rows make which series, in which order: by id, by time within it, and on a grid if one is asked for."""

import dataclasses
import re
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped

from fivo.data.budget import STEP_BYTES, Budget
from fivo.data.foreign import shown
from fivo.data.tables.backend import Frame
from fivo.data.tables.cells import cleaned, column_of, read_times
from fivo.data.tables.schema import StepUnit, TimeKind, TimeRule
from fivo.errors import InputError

MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
MONTHS = {"mo": 1, "q": 3, "y": 12}
_EVERY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The steps of all series end to end; those of series `i` are `offsets[i]` to `offsets[i + 1]`.

    Args:
        ids: of each series, as the table has them; `[None]` for the one series of a table without an id.
        offsets: where each series begins, and where the last one ends.
        rows: the row of the table that each step is, -1 for a step that only the grid has.
        times: of each step: numbers, or microseconds since 1970.
        kind: what these times are.
    """

    ids: list[Any]
    offsets: Int64[np.ndarray, " _bounds"]
    rows: Int64[np.ndarray, " steps"]
    times: Shaped[np.ndarray, " steps"]
    kind: TimeKind

    @property
    def lengths(self) -> Int64[np.ndarray, " _series"]:
        """Steps of each series."""
        return np.diff(self.offsets)

    @property
    def series(self) -> Int64[np.ndarray, " steps"]:
        """The series that each step belongs to."""
        return np.repeat(np.arange(len(self.ids)), self.lengths)

    @property
    def positions(self) -> Int64[np.ndarray, " steps"]:
        """The place of each step within its series."""
        return np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], self.lengths)


def lay_out(frame: Frame, id_column: str | None, time_column: str | None, every: str | None, budget: Budget) -> Layout:
    """The series of a table; a missing id, a missing time, and two rows of one id and time are refused."""
    budget.spend(frame.height * STEP_BYTES)
    codes, ids = _series(frame, id_column)
    budget.spend_sequences(len(ids))
    if time_column is None:
        if every is not None:
            raise InputError("a grid (`every`) needs the column of time; name it.")
        kind: TimeKind = "rows"
        rows = np.argsort(codes, kind="stable")
        times = np.arange(frame.height, dtype=np.float64)
    else:
        kind, times = read_times(frame, time_column)
        rows = np.lexsort((times, codes))
    codes, times = codes[rows], times[rows]
    same = (np.diff(codes) == 0) & (np.diff(times) == 0)
    if same.any():
        first = int(np.argmax(same))
        of = "" if id_column is None else f" of {shown(ids[codes[first]])}"
        raise InputError(
            f"every row of a series must have a time of its own, but rows {rows[first] + 1} and {rows[first + 1] + 1}"
            f"{of} have the same."
        )
    offsets = np.searchsorted(codes, np.arange(len(ids) + 1))
    if kind == "rows":
        times = times * 0 + (np.arange(len(rows)) - offsets[codes])
    laid = Layout(ids, offsets, rows, times, kind)
    return laid if every is None else _on_grid(laid, every, budget)


def _series(frame: Frame, id_column: str | None) -> tuple[np.ndarray, list[Any]]:
    """The series of each row, in order of appearance, and their ids."""
    if id_column is None:
        return np.zeros(frame.height, np.int64), [None]
    given = column_of(frame, id_column)
    if given.dtype.is_nested() or given.dtype.is_float():
        raise InputError(f"the id {shown(id_column)} must be texts or whole numbers, got {str(given.dtype).lower()}.")
    texts = cleaned(given)
    if texts.null_count():
        raise InputError(
            f"the id {shown(id_column)} must be in every row, but it is missing in row {texts.is_null().arg_max() + 1}."
        )
    by_value = texts.rank("dense").to_numpy().astype(np.int64) - 1
    first = np.full(int(by_value.max()) + 1, frame.height)
    np.minimum.at(first, by_value, np.arange(frame.height))
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[by_value], given.gather(np.sort(first)).to_list()


def parse_every(every: Any, kind: TimeKind) -> tuple[float | int, StepUnit]:
    """A grid: a number for times that are numbers, else such as "10min", "1h", "1d", "1w", "1mo", "1q" or "1y".

    Returns:
        The step in the unit of `Layout.times` (microseconds for dates), or in months.
    """
    match = _EVERY.fullmatch(str(every).strip())
    amount, unit = (float(match[1]), match[2]) if match else (0.0, "")
    if amount > 0:
        if kind == "number" and not unit:
            return amount, "number"
        if kind in ("date", "datetime") and unit in MICROSECONDS and amount * MICROSECONDS[unit] % 1 == 0:
            return int(amount * MICROSECONDS[unit]), "second"
        if kind in ("date", "datetime") and unit in MONTHS and amount % 1 == 0:
            return int(amount) * MONTHS[unit], "month"
    needed = "a positive number" if kind == "number" else "such as 30s, 10min, 1h, 1d, 1w, 1mo, 1q or 1y"
    raise InputError(f"`every` must be {needed}, as the time of this table is, got {every!r:.40}.")


def _on_grid(laid: Layout, every: str, budget: Budget) -> Layout:
    step, unit = parse_every(every, laid.kind)
    if unit == "month":
        cells = _months(laid.times) // int(step)
    elif unit == "second":
        cells = laid.times // int(step)
    else:
        cells = np.floor(laid.times / step + 1e-9)
        if np.abs(cells).max() > 2**52:
            raise InputError(f"`every` must not be tiny beside the times, which reach {np.abs(laid.times).max():g}.")
        cells = cells.astype(np.int64)
    twice = (np.diff(cells) == 0) & (np.diff(laid.series) == 0)
    if twice.any():
        first = int(np.argmax(twice))
        raise InputError(
            f"at most one row of a series may fall into a step of the grid, but rows {laid.rows[first] + 1} and "
            f"{laid.rows[first + 1] + 1} do; choose a smaller `every` than {every}, or average such rows first."
        )
    begin = cells[laid.offsets[:-1]]
    lengths = cells[laid.offsets[1:] - 1] - begin + 1
    total = int(lengths.sum(dtype=np.float64))
    budget.spend(total * STEP_BYTES)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.full(total, -1)
    rows[offsets[laid.series] + cells - begin[laid.series]] = laid.rows
    index = np.repeat(begin - offsets[:-1], lengths) + np.arange(total)
    if unit == "month":
        times = (index * int(step)).astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    else:
        times = index * step
    return Layout(laid.ids, offsets, rows, times, laid.kind)


def gaps(laid: Layout, unit: StepUnit) -> Shaped[np.ndarray, " steps"]:
    """The time of each step since the one before it in its series, in seconds, months or numbers; NaN for the first."""
    times = _months(laid.times) if unit == "month" else laid.times
    found = np.empty(len(times))
    found[1:] = np.diff(times)
    found[laid.offsets[:-1]] = np.nan
    return found / 1e6 if unit == "second" else found


def time_rule(laid: Layout, every: str | None) -> TimeRule:
    """What time is in a table, and whether it advances in equal steps; months count as equal."""
    if every is not None:
        step, unit = parse_every(every, laid.kind)
        return TimeRule(laid.kind, step / 1e6 if unit == "second" else step, unit, True, every)
    unit: StepUnit = "second" if laid.kind in ("date", "datetime") else "number"
    found = gaps(laid, unit)
    found = found[~np.isnan(found)]
    if not len(found):
        return TimeRule(laid.kind, 1.0, unit)
    middle = float(np.median(found))
    if is_regular(found, middle):
        return TimeRule(laid.kind, middle, unit)
    if unit == "second":
        by_month = gaps(laid, "month")
        by_month = by_month[~np.isnan(by_month)]
        if (by_month == by_month[0]).all() and by_month[0] > 0 and _same_place_in_month(laid.times):
            return TimeRule(laid.kind, float(by_month[0]), "month")
    return TimeRule(laid.kind, middle, unit, regular=False)


def times_after(rule: TimeRule, last: Any, count: int) -> Shaped[np.ndarray, " count"]:
    """The times of the steps that follow the last one of a series, each one `rule.step` after the other.

    Args:
        rule: what time is (`TableSchema.time`).
        last: the last time of the series, as `TableSequences.times` has it.
        count: how many steps follow.

    Returns:
        datetime64 for dates and times, else numbers. The last day of a month is followed by the last of the next.
    """
    ahead = np.arange(1, count + 1)
    if rule.kind in ("rows", "number"):
        return last + rule.step * ahead
    last = np.datetime64(last, "us")
    if rule.unit == "second":
        return last + np.rint(rule.step * 1e6 * ahead).astype("timedelta64[us]")
    month = last.astype("datetime64[M]")
    months = month + (int(rule.step) * ahead).astype("timedelta64[M]")
    day, within = last.astype("datetime64[D]") - month.astype("datetime64[D]"), last - last.astype("datetime64[D]")
    ends = (months + 1).astype("datetime64[D]") - 1
    is_end = last.astype("datetime64[D]") == (month + 1).astype("datetime64[D]") - 1
    days = ends if is_end else np.minimum(months.astype("datetime64[D]") + day, ends)
    return days.astype("datetime64[us]") + within


def is_regular(found: Shaped[np.ndarray, " _gaps"], step: float) -> bool:
    """Whether all gaps are one step, but for rounding."""
    return bool((np.abs(found - step) <= 1e-6 * step).all())


def _months(times: Shaped[np.ndarray, " steps"]) -> Int64[np.ndarray, " steps"]:
    return times.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def _same_place_in_month(times: Shaped[np.ndarray, " steps"]) -> bool:
    """Whether all times are equally far from the beginning, or from the end, of their month."""
    moments = times.astype("datetime64[us]")
    months = moments.astype("datetime64[M]")
    since = moments - months.astype("datetime64[us]")
    until = (months + 1).astype("datetime64[us]") - moments
    return bool((since == since[0]).all() or (until == until[0]).all())
