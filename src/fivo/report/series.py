"""Charts of series: forecasts, imputed gaps, alarms, and latent states."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fivo.report.style import INK, QUIET
from fivo.report.tracks import ALARM, Track, add_legend, draw_expected, draw_observed, grid, mark_start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P_VALUE = "p-value"


def plot_forecast(tracks: Sequence[Track], *, time_label: str = "time", title: str = "") -> "Figure":
    """Fan charts: what was observed, and what the model expects to follow, within its intervals.

    Args:
        tracks: One for each series and quantity; their times are those of the history and of the forecast, one after
            the other, `observed` is NaN in the forecast, `mean` and `quantiles` are NaN in the history.
        time_label: What time is.
        title: Of the figure.

    Returns:
        A figure with a column for each series and a row for each quantity.
    """
    figure, panels = grid(tracks, time_label, title)
    for track in tracks:
        axes, times = panels[track.series, track.quantity], np.asarray(track.times)
        draw_observed(axes, track)
        draw_expected(axes, track, "forecast", dots=bool(np.isfinite(track.numbers("mean")).sum() == 1))
        seen = np.flatnonzero(np.isfinite(track.numbers("observed")))
        if len(seen):
            mark_start(axes, times[seen[-1]])
    add_legend(figure, panels)
    return figure


def plot_imputed(tracks: Sequence[Track], *, time_label: str = "time", title: str = "") -> "Figure":
    """What was observed, and what fills the gaps, within its intervals.

    Args:
        tracks: One for each series and quantity; `mean` and `quantiles` are NaN where something was observed.
        time_label: What time is.
        title: Of the figure.

    Returns:
        A figure with a column for each series and a row for each quantity.
    """
    figure, panels = grid(tracks, time_label, title)
    for track in tracks:
        axes = panels[track.series, track.quantity]
        draw_observed(axes, track)
        draw_expected(axes, _joined(track), "imputed")
    add_legend(figure, panels)
    return figure


def _joined(track: Track) -> Track:
    """The filled gaps, each from the last row before it to the first one after it, where nothing is uncertain."""
    seen, filled = np.isfinite(track.numbers("observed")), np.isfinite(track.numbers("mean"))
    edge = seen & (np.append(filled[1:], False) | np.append(False, filled[:-1]))
    join = lambda values: np.where(edge, track.numbers("observed"), values)  # noqa: E731
    quantiles = {level: join(np.asarray(values, np.float64)) for level, values in track.quantiles.items()}
    return Track(track.series, track.quantity, track.times, track.observed, join(track.numbers("mean")), quantiles)


def plot_anomaly(
    tracks: Sequence[Track], *, rate: float | None = None, time_label: str = "time", title: str = ""
) -> "Figure":
    """Timelines with the alarms marked, above the p-values that raised them.

    Args:
        tracks: One for each series and quantity, with `p_values`; `mean` and `quantiles`, if given, are what was
            expected of each row before it was seen.
        rate: The false-alarm rate: rows with p-values up to it are marked.
        time_label: What time is.
        title: Of the figure.

    Returns:
        A figure with a column for each series and a row for each quantity.
    """
    figure, panels = grid(tracks, time_label, title, extra=[P_VALUE])
    for track in tracks:
        axes, times = panels[track.series, track.quantity], np.asarray(track.times)
        draw_observed(axes, track)
        draw_expected(axes, track, "expected")
        if rate is not None:
            alarm = (track.numbers("p_values") <= rate) & np.isfinite(track.numbers("observed"))
            _mark(axes, times[alarm], track.numbers("observed")[alarm])
    for track in {track.series: track for track in tracks}.values():
        _draw_p_values(panels[track.series, P_VALUE], track, rate)
    add_legend(figure, panels)
    return figure


def _draw_p_values(axes: "Axes", track: Track, rate: float | None) -> None:
    times, p = np.asarray(track.times), track.numbers("p_values")
    axes.set_yscale("log")
    axes.vlines(times, p, 1.0, color=QUIET, linewidth=0.7, alpha=0.7)
    axes.plot(times, p, ".", color=INK, markersize=2.5)
    lowest = min(float(np.nanmin(p)) if np.isfinite(p).any() else 1e-3, rate or 1.0)
    axes.set_ylim(max(lowest, 1e-12) / 2, 1.5)
    if rate is not None:
        axes.axhline(rate, color=ALARM, linewidth=1.1, linestyle="--", label=f"false-alarm rate {rate:g}")
        _mark(axes, times[p <= rate], p[p <= rate])


def _mark(axes: "Axes", x: np.ndarray, y: np.ndarray) -> None:
    if len(x):
        axes.plot(x, y, "o", markersize=5, fillstyle="none", markeredgewidth=1.4, color=ALARM, label="alarm", zorder=5)


def plot_states(tracks: Sequence[Track], *, time_label: str = "time", title: str = "") -> "Figure":
    """Latent states over time, within their intervals.

    Args:
        tracks: One for each series and latent.
        time_label: What time is.
        title: Of the figure.

    Returns:
        A figure with a column for each series and a row for each quantity.
    """
    figure, panels = grid(tracks, time_label, title)
    for track in tracks:
        axes = panels[track.series, track.quantity]
        if track.observed is not None:
            draw_observed(axes, track)
        draw_expected(axes, track, "mean")
    add_legend(figure, panels)
    return figure
