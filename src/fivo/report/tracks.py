"""Series over time and what a model says of them: the panels that forecasts, imputations, alarms and states share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.extras import require
from fivo.report.figures import dress, new_figure, plain
from fivo.report.style import INK, LIGHT_COLOURS, QUIET
from fivo.runs import TrackRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_WIDTH, WIDE, PANEL_HEIGHT, LEGEND_HEIGHT = 4.6, 9.0, 2.3, 0.7
"""Inches; a single column of panels is wide."""
MOST_MARKED_ROWS = 60
MOST_ROWS = 2000
"""Of a series, that a run's directory keeps."""
MODEL = LIGHT_COLOURS[0]
ALARM = "#C4161C"
BANDS = (0.24, 0.34, 0.44)
"""How dark intervals are, the widest first."""


@dataclass(frozen=True)
class Track:
    """One quantity of one series over time.

    Args:
        series: Which series.
        quantity: What it is, with its unit if that is known: the label of the axis.
        times: [time], numbers or datetime64.
        observed: [time], NaN where nothing was observed; None for what nobody observes.
        mean: [time], what the model expects, NaN where it says nothing.
        quantiles: [time] by level, such as 0.1 and 0.9, NaN where the model says nothing.
        p_values: [time], how ordinary the rows are.
    """

    series: str
    quantity: str
    times: ArrayLike
    observed: ArrayLike | None = None
    mean: ArrayLike | None = None
    quantiles: Mapping[float, ArrayLike] = field(default_factory=dict)
    p_values: ArrayLike | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.times)
        given = {"observed": self.observed, "mean": self.mean, "p_values": self.p_values}
        given |= {f"quantile {level:g}": values for level, values in self.quantiles.items()}
        for name, values in given.items():
            found = shape if values is None else np.shape(values)
            if len(shape) != 1 or found != shape:
                raise InputError(
                    f"the {name} of {self.quantity!r:.60} must have shape {list(shape)}, a number for every time, got "
                    f"{list(found)}."
                )

    def record(self) -> TrackRecord:
        """As a run's directory holds it.

        Returns:
            The record, with the last rows of a long series.
        """
        kept = slice(-MOST_ROWS, None)
        times = np.asarray(self.times)[kept]
        plain = lambda values: None if values is None else [_rounded(v) for v in np.asarray(values)[kept]]  # noqa: E731
        return TrackRecord(
            self.series,
            self.quantity,
            [str(t) for t in times] if times.dtype.kind == "M" else [float(t) for t in times],
            plain(self.observed),
            plain(self.mean),
            {f"{level:g}": plain(values) or [] for level, values in self.quantiles.items()},
            plain(self.p_values),
        )

    @classmethod
    def of(cls, record: TrackRecord) -> "Track":
        """What `record` took apart.

        Args:
            record: From a run's directory.
        """
        dates = bool(record.times) and isinstance(record.times[0], str)
        quantiles = {float(level): _numbers(values) for level, values in record.quantiles.items()}
        return cls(
            record.series,
            record.quantity,
            np.array(record.times, "datetime64[us]" if dates else np.float64),
            _numbers(record.observed),
            _numbers(record.mean),
            {level: values for level, values in quantiles.items() if values is not None},
            _numbers(record.p_values),
        )

    def numbers(self, name: str) -> NDArray[np.float64]:
        """One of the arrays as numbers.

        Args:
            name: `observed`, `mean` or `p_values`.

        Returns:
            Numbers [time], NaN where there is none.
        """
        values = getattr(self, name)
        return np.full(np.shape(self.times), np.nan) if values is None else np.asarray(values, np.float64)

    @property
    def intervals(self) -> list[tuple[float, NDArray[np.float64], NDArray[np.float64]]]:
        """The share inside, lower and upper ends of the intervals that quantiles make in pairs, the widest first."""
        found = []
        for low in sorted(level for level in self.quantiles if level < 0.5):
            high = next((level for level in self.quantiles if abs(level - (1 - low)) < 1e-9), None)
            if high is not None:
                ends = (np.asarray(self.quantiles[level], np.float64) for level in (low, high))
                found.append((1 - 2 * low, *ends))
        return found


def _rounded(value: Any) -> float | None:
    """A number with the digits that a plot can show."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _numbers(values: Sequence[float | None] | None) -> NDArray[np.float64] | None:
    return None if values is None else np.array([np.nan if v is None else v for v in values], np.float64)


def grid(
    tracks: Sequence[Track], time_label: str, title: str, *, extra: Sequence[str] = ()
) -> "tuple[Figure, dict[tuple[str, str], Axes]]":
    """A figure with a column for each series and a row for each quantity, and for what `extra` names."""
    if not tracks:
        raise InputError("there is nothing to plot; give at least one track.")
    series = list(dict.fromkeys(track.series for track in tracks))
    quantities = [*dict.fromkeys(track.quantity for track in tracks), *extra]
    width = WIDE if len(series) == 1 else PANEL_WIDTH * len(series)
    figure = new_figure(width, PANEL_HEIGHT * len(quantities) + LEGEND_HEIGHT)
    if title:
        figure.suptitle(plain(title), fontweight="bold", color=INK, parse_math=False)
    made: Any = figure.subplots(len(quantities), len(series), squeeze=False, sharex="col")
    panels = {}
    for row, quantity in enumerate(quantities):
        for column, name in enumerate(series):
            axes = made[row, column]
            last = row == len(quantities) - 1
            dress(axes, name if row == 0 else "", time_label if last else "", quantity if column == 0 else "")
            panels[name, quantity] = axes
    if any(np.asarray(track.times).dtype.kind == "M" for track in tracks):
        dates = require("matplotlib.dates", "Plotting")
        for axes in made[-1]:
            locator = dates.AutoDateLocator(minticks=3, maxticks=7)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return figure, panels


def draw_observed(axes: "Axes", track: Track) -> None:
    """What was observed: a line that stops at gaps, and dots where there are few of them."""
    x, y = np.asarray(track.times), track.numbers("observed")
    seen = np.isfinite(y)
    # A row between two gaps is on no line, so it is a dot.
    alone = seen & ~np.append(seen[1:], False) & ~np.append(False, seen[:-1])
    marked = seen if seen.sum() <= MOST_MARKED_ROWS else alone
    axes.plot(x, y, color=INK, linewidth=1.1, label="observed", zorder=3)
    axes.plot(x[marked], y[marked], ".", color=INK, markersize=3.5, zorder=3)


def draw_expected(axes: "Axes", track: Track, label: str, *, dots: bool = False) -> None:
    """What the model expects: a line, or dots, within its intervals."""
    x, y = np.asarray(track.times), track.numbers("mean")
    shades = BANDS[: len(track.intervals)] if len(track.intervals) <= len(BANDS) else np.linspace(0.1, 0.45, 9)
    for (share, low, high), shade in zip(track.intervals, shades, strict=False):
        axes.fill_between(
            x, low, high, color=MODEL, alpha=shade, linewidth=0, label=f"{100 * share:.3g} % interval", zorder=1
        )
    if np.isfinite(y).any():
        axes.plot(x, y, color=MODEL, linewidth=1.6, label=label, zorder=4)
        if dots:
            axes.plot(x, y, ".", color=MODEL, markersize=4, zorder=4)


def add_legend(figure: "Figure", panels: "Mapping[tuple[str, str], Axes]") -> None:
    """One legend below all panels, with every label once."""
    found: dict[str, Any] = {}
    for axes in panels.values():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    legend = figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=len(found), fontsize=9, frameon=False
    )
    for text in legend.get_texts():
        text.set_color(INK)


def mark_start(axes: "Axes", time: Any) -> None:
    """A line where what was observed ends."""
    axes.axvline(time, color=QUIET, linewidth=0.9, linestyle=":", zorder=0)
