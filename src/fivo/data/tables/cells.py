"""What the cells of a column are: numbers, texts or times.

A column with any number in it is one of numbers, and a text in it is refused; it is one of texts only if no cell is a
number, or if its kind is said to be a category.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from fivo.data.columns import ColumnKind
from fivo.data.foreign import shown
from fivo.data.tables.backend import Frame, Series, polars, refusing_table
from fivo.data.tables.schema import TimeKind
from fivo.errors import InputError

MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")
"""Texts that mark a missing cell, in upper or lower case; so does an empty one."""
TIMES = (
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
)
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y-%m")
"""Day and month first or last is never guessed."""

LARGEST_TIME = 2**53


@dataclasses.dataclass(frozen=True)
class Cells:
    """The cells of a column: `numbers`, NaN where one is missing, or `texts`, null where one is."""

    name: str
    numbers: Float64[np.ndarray, " rows"] | None
    texts: Series | None
    is_truth: bool = False

    @property
    def missing(self) -> Shaped[np.ndarray, " rows"]:
        """True where a cell is missing."""
        return np.isnan(self.numbers) if self.numbers is not None else self._texts.is_null().to_numpy()

    @property
    def labels(self) -> Series:
        """Every cell as the label of a category."""
        if self.numbers is None:
            return self._texts
        pl = polars()
        numbers = pl.Series(self.numbers).fill_nan(None)
        whole = numbers.cast(pl.Int64, strict=False)
        exact = (whole.cast(pl.Float64) == numbers).fill_null(False)
        return whole.cast(pl.String).zip_with(exact, numbers.cast(pl.String))

    def codes(self, categories: tuple[str, ...]) -> Int64[np.ndarray, " rows"]:
        """Every cell as its place among the categories, -1 where it is missing; a new category is refused."""
        pl = polars()
        labels = self.labels
        places = pl.Series(range(len(categories)), dtype=pl.Int64)
        codes = labels.replace_strict(pl.Series(categories, dtype=pl.String), places, default=None)
        new = (codes.is_null() & labels.is_not_null()).to_numpy()
        if new.any():
            row = int(np.argmax(new))
            known = ", ".join(shown(label) for label in categories[:5]) + (", …" if len(categories) > 5 else "")
            raise InputError(
                f"column {shown(self.name)} holds the category {shown(labels[row])} in row {row + 1}, but only {known} "
                "were known when the model was made."
            )
        return codes.fill_null(-1).to_numpy()

    @property
    def _texts(self) -> Series:
        return polars().Series([], dtype=polars().String) if self.texts is None else self.texts


def read_cells(frame: Frame, name: str, kind: ColumnKind | None = None) -> Cells:
    """The cells of a column of numbers or texts; `kind` decides where it is known."""
    pl = polars()
    given = column_of(frame, name)
    dtype = given.dtype
    if dtype == pl.Boolean:
        return Cells(name, _floats(given.cast(pl.Float64)), None, is_truth=True)
    if dtype.is_numeric():
        return Cells(name, _finite(_floats(given.cast(pl.Float64, strict=False)), name), None)
    if dtype == pl.Null:
        return Cells(name, np.full(frame.height, np.nan), None)
    if not (dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)):
        raise InputError(f"column {shown(name)} must hold numbers or texts, but its cells are {_type_name(dtype)}.")
    texts = cleaned(given)
    numbers = texts.cast(pl.Float64, strict=False)
    known = numbers.is_not_null()
    if kind == "category" or (kind is None and not known.any()):
        if kind is None and texts.null_count() == len(texts):
            return Cells(name, np.full(frame.height, np.nan), None)
        return Cells(name, None, texts)
    bad = (texts.is_not_null() & ~known).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        why = f"is said to be a {kind}" if kind is not None and not known.any() else "holds numbers"
        raise InputError(
            f"column {shown(name)} {why}, so every cell of it must be one or empty, got {shown(given[row])} in row "
            f"{row + 1}."
        )
    return Cells(name, _finite(_floats(numbers), name), None)


def read_times(frame: Frame, name: str) -> tuple[TimeKind, Shaped[np.ndarray, " rows"]]:
    """A column of time: what it is, and numbers, or microseconds since 1970 (UTC) of dates and times."""
    pl = polars()
    given = column_of(frame, name)
    missing = given.is_null() if given.dtype != pl.String else cleaned(given).is_null()
    if missing.any():
        raise InputError(
            f"the time {shown(name)} must be in every row, but it is missing in row {missing.arg_max() + 1}."
        )
    if given.dtype == pl.Date:
        return "date", given.cast(pl.Datetime("us")).to_physical().to_numpy()
    if isinstance(given.dtype, pl.Datetime):
        return "datetime", given.cast(pl.Datetime("us", given.dtype.time_zone)).to_physical().to_numpy()
    if given.dtype.is_numeric():
        return "number", _times(_floats(given.cast(pl.Float64, strict=False)), name)
    if given.dtype != pl.String:
        raise InputError(f"the time {shown(name)} must be numbers, dates or times, got {_type_name(given.dtype)}.")
    return _parsed_times(cleaned(given), name)


def _parsed_times(texts: Series, name: str) -> tuple[TimeKind, np.ndarray]:
    pl = polars()
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.is_not_null().all():
        return "number", _times(numbers.to_numpy(), name)
    worst = 0
    for form in (*DATES, *TIMES):
        given = texts + "-01" if form == "%Y-%m" else texts
        layout = "%Y-%m-%d" if form == "%Y-%m" else form
        if given.head(1).str.to_datetime(layout, strict=False).null_count():
            continue
        times = given.str.to_datetime(layout, time_unit="us", strict=False)
        if not times.null_count():
            return "date" if form in DATES else "datetime", times.to_physical().to_numpy()
        worst = max(worst, int(times.is_null().arg_max() or 0))
    raise InputError(
        f"the time {shown(name)} must be a number or like 2024-01-31 or 2024-01-31 12:00:00 in all rows, got "
        f"{shown(texts[worst])} in row {worst + 1}."
    )


def _times(numbers: np.ndarray, name: str) -> np.ndarray:
    good = np.abs(numbers) <= LARGEST_TIME
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            f"the time {shown(name)} must be from -2^53 to 2^53, where whole numbers are exact, got {numbers[row]:g} "
            f"in row {row + 1}."
        )
    return numbers


def column_of(frame: Frame, name: str) -> Series:
    """A column, if it exists."""
    if name not in frame.columns:
        have = ", ".join(shown(column) for column in frame.columns[:8]) + (", …" if frame.width > 8 else "")
        raise InputError(f"the table must have a column {shown(name)}, but it has {have}.")
    return frame.get_column(name)


def cleaned(given: Series) -> Series:
    """Texts without spaces around them, null where one is missing."""
    pl = polars()
    texts = given.cast(pl.String).str.strip_chars()
    return texts.to_frame("t").select(
        pl.when(pl.col("t").str.to_lowercase().is_in(MISSING)).then(None).otherwise(pl.col("t")).alias("t")
    )["t"]


def _floats(series: Series) -> Float64[np.ndarray, " rows"]:
    with refusing_table(f"column {series.name!r:.60}", "column of numbers", "convert it first"):
        return np.array(series.fill_null(float("nan")).to_numpy(), np.float64)


def _finite(numbers: Float64[np.ndarray, " rows"], name: str) -> Float64[np.ndarray, " rows"]:
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(f"column {shown(name)} must hold finite numbers, got {numbers[row]:g} in row {row + 1}.")
    return numbers


def _type_name(dtype: Any) -> str:
    return str(dtype).split("(")[0].lower()
