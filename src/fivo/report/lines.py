"""What a chart shows: lines, grouped into panels, checked before anything is drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError

# From here on numbers count as infinite, so that sums and ratios of the others cannot overflow.
HUGE = 1e240


@dataclass(frozen=True)
class Line:
    """A line through points.

    Args:
        label: What the legend calls it.
        x: Where the points are [point].
        y: Their values [point].
        error: Standard errors for a band around the line [point]; None for no band.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    error: ArrayLike | None = None


@dataclass(frozen=True)
class Panel:
    """One chart.

    Args:
        lines: Its lines.
        title: Above it.
        x_label: Below the x axis.
        y_label: Beside the y axis.
        log_x: Whether the x axis is logarithmic.
        log_y: Whether the y axis is logarithmic.
        reference: Horizontal lines by their labels.
    """

    lines: Sequence[Line]
    title: str
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    reference: Mapping[str, int | float] = field(default_factory=dict)


class Curve(NamedTuple):
    """A checked line; the arrays have shape [points], and `error` is zero where there is none."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64]
    has_error: bool


def curve_of(line: Line) -> Curve:
    """The numbers of a line, with NaN for what is missing or infinite; what is not a line raises `InputError`."""
    try:
        x, y = np.asarray(line.x, np.float64), np.asarray(line.y, np.float64)
        error = np.zeros_like(y) if line.error is None else np.asarray(line.error, np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"x, y and error of the line {line.label!r} must be lists of numbers, got other entries ({problem}); use "
            "NaN for what is missing."
        ) from problem
    if x.ndim != 1 or x.shape != y.shape or x.shape != error.shape:
        raise InputError(
            f"x, y and error of the line {line.label!r} must be lists of the same length, got shapes {list(x.shape)}, "
            f"{list(y.shape)} and {list(error.shape)}."
        )
    if (error < 0).any():
        raise InputError(
            f"the standard errors of the line {line.label!r} must not be negative, got {error[error < 0][0]:g}; pass "
            "the error itself, not the lower end of the band."
        )
    return Curve(line.label, _without_huge(x), _without_huge(y), _without_huge(error), line.error is not None)


def _without_huge(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(values) < HUGE, values, np.nan)
