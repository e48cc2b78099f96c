"""Columns: what each entry of a frame is, and how it was scaled."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from fivo.data.foreign import shown
from fivo.errors import InputError

ColumnKind = Literal["real", "count", "binary", "category"]
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
MOST_COLUMNS = 1_000_000
MOST_CATEGORIES = 10_000
LARGEST_COUNT = 1 << 24
"""Single precision holds every whole number up to this one."""


@dataclasses.dataclass(frozen=True)
class Column:
    """One entry of a frame.

    Args:
        name: what people call it.
        kind: `real`, `count` (0, 1, 2, ...), `binary` (0 or 1) or `category` (the symbols 0 … K - 1).
        shift: what was subtracted from a real column before it was divided by `scale`.
        scale: see `shift`; (0, 1) says that the column is as it was given.
        categories: the labels of the symbols 0 … K - 1 of a category column, in this order.
    """

    name: str
    kind: ColumnKind
    shift: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"the name of a column must be a text that is not empty, got {self.name!r:.40}.")
        checked_column_kind(self.kind, self.name)
        if not (_is_number(self.shift) and _is_number(self.scale) and self.scale > 0):
            raise InputError(
                f"the shift of column {shown(self.name)} must be finite and its scale positive, got "
                f"{self.shift!r:.40} and {self.scale!r:.40}."
            )
        if self.kind != "real" and self.is_scaled:
            raise InputError(f"only a real column can be scaled, but {shown(self.name)} is a {self.kind}.")
        if (self.kind == "category") != bool(self.categories):
            raise InputError(
                f"a category column must name its categories, and no other may, got {len(self.categories)} for the "
                f"{self.kind} column {shown(self.name)}."
            )
        if len(self.categories) > MOST_CATEGORIES:
            raise InputError(
                f"column {shown(self.name)} has {len(self.categories):,} categories, more than {MOST_CATEGORIES:,}; "
                "join the rare ones."
            )
        if len(set(self.categories)) < len(self.categories):
            raise InputError(f"the categories of column {shown(self.name)} must differ, but one comes twice.")

    @property
    def is_scaled(self) -> bool:
        """Whether the stored numbers are others than those that were given."""
        return (self.shift, self.scale) != (0.0, 1.0)


def checked_column_kind(kind: Any, name: str) -> ColumnKind:
    """`kind`, if it is one."""
    if kind not in KINDS:
        raise InputError(f"the kind of column {shown(name)} must be one of {', '.join(KINDS)}, got {kind!r:.40}.")
    return kind


def guess_kind(values: Shaped[np.ndarray, " _values"]) -> ColumnKind:
    """`binary` if all values are 0 or 1 (or truths), `count` if all are whole and not negative, else `real`.

    Whole numbers above 2^24 are taken for real ones. A `category` is never guessed from numbers.
    """
    if values.dtype.kind == "b" or bool(((values == 0) | (values == 1)).all()):
        return "binary"
    whole = values.dtype.kind in "iu" or bool((values == np.floor(values)).all())
    return "count" if whole and values.min() >= 0 and values.max() <= LARGEST_COUNT else "real"


def default_categories(largest: float, name: str) -> tuple[str, ...]:
    """The labels "0", "1", ... up to the largest symbol."""
    if not 0 <= largest < MOST_CATEGORIES:
        raise InputError(
            f"the symbols of category column {shown(name)} must be whole numbers from 0 to {MOST_CATEGORIES - 1:,}, "
            f"got {largest:g}."
        )
    return tuple(map(str, range(int(largest) + 1)))


def check_values(
    columns: Sequence[Column],
    values: Shaped[np.ndarray, "_time _dimension"],
    mask: Bool[np.ndarray, "_time _dimension"] | None,
    where: str,
) -> None:
    """Refuse frames that hold, where they were observed, what their columns cannot."""
    found = first_bad(columns, values, mask)
    if found is not None:
        raise InputError(f"{where}: {mistake(columns[found[1]], values[found])} at step {found[0]}.")


def first_bad(
    columns: Sequence[Column],
    values: Shaped[np.ndarray, "_time _dimension"],
    mask: Bool[np.ndarray, "_time _dimension"] | None,
) -> tuple[int, int] | None:
    """Step and column of the first observed entry that its column cannot hold; None if there is none."""
    good = np.isfinite(values)
    limits = _limits(columns)
    if limits is not None:
        discrete, largest = limits
        part = values[:, discrete]
        with np.errstate(invalid="ignore"):
            good[:, discrete] &= (part == np.floor(part)) & (part >= 0) & (part <= largest)
    if mask is not None:
        good |= ~mask
    if good.all():
        return None
    time, index = np.unravel_index(int(np.argmin(good)), good.shape)
    return int(time), int(index)


def mistake(column: Column, value: Any) -> str:
    """What a column must hold, and the value that it does not."""
    needed = {
        "real": "finite numbers where it was observed",
        "count": f"whole numbers from 0 to {LARGEST_COUNT:,}",
        "binary": "0 or 1",
        "category": f"the symbols 0 to {len(column.categories) - 1}",
    }[column.kind]
    return f"the {column.kind} column {shown(column.name)} must hold {needed}, got {value:g}"


def moments(
    sequences: Sequence[np.ndarray], masks: Sequence[np.ndarray] | None
) -> tuple[Float64[np.ndarray, " dimension"], Float64[np.ndarray, " dimension"]]:
    """Mean and standard deviation of every column over what was observed; a deviation of 0 becomes 1."""
    width = sequences[0].shape[1]
    masks = masks or [np.ones(x.shape, bool) for x in sequences]
    count, total, squares = np.zeros(width), np.zeros(width), np.zeros(width)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not finite, which the caller refuses
        for x, mask in zip(sequences, masks, strict=True):
            count += mask.sum(axis=0)
            total += np.where(mask, x, 0).sum(axis=0, dtype=np.float64)
        mean = total / np.maximum(count, 1)
        for x, mask in zip(sequences, masks, strict=True):  # a second pass: squares of large numbers would cancel
            squares += np.square(np.where(mask, x - mean, 0)).sum(axis=0)
        deviation = np.sqrt(squares / np.maximum(count, 1))
    return mean, np.where(deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300), deviation, 1.0)


def scaled(
    columns: Sequence[Column], values: Shaped[np.ndarray, "*shape dimension"]
) -> Float64[np.ndarray, "*shape dimension"]:
    """Raw values on the model's scale: (x - shift) / scale."""
    shift, scale = scaling_of(columns)
    return (np.asarray(values, np.float64) - shift) / scale


def scaling_of(columns: Sequence[Column]) -> tuple[Float64[np.ndarray, " columns"], Float64[np.ndarray, " columns"]]:
    """Shift and scale of every column."""
    return np.array([c.shift for c in columns], np.float64), np.array([c.scale for c in columns], np.float64)


def check_names(columns: Sequence[Column], what: str) -> None:
    """Refuse two columns of one name."""
    names = [column.name for column in columns]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise InputError(f"{what} must have different names, but {shown(twice)} comes twice; rename one.")


def _limits(columns: Sequence[Column]) -> tuple[np.ndarray, np.ndarray] | None:
    """Places and largest values of the columns that hold whole numbers."""
    largest = {"count": lambda c: LARGEST_COUNT, "binary": lambda c: 1, "category": lambda c: len(c.categories) - 1}
    found = [(i, largest[c.kind](c)) for i, c in enumerate(columns) if c.kind != "real"]
    return (np.array([i for i, _ in found]), np.array([most for _, most in found])) if found else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
