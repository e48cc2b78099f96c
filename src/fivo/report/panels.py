"""Line charts, side by side in one figure."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fivo.errors import InputError
from fivo.report.figures import dress, new_figure, plain
from fivo.report.lines import Curve, Line, Panel, curve_of
from fivo.report.style import DASHES, INK, LIGHT_COLOURS, LIGHT_PAPER, MARKS, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_WIDTH, PANEL_HEIGHT = 5.0, 3.6
ENTRY_WIDTH, ENTRY_HEIGHT = 1.8, 0.22
"""Inches."""
MOST_COLUMNS = 3
MOST_MARKED_POINTS = 40
MOST_ENTRIES_INSIDE = 8
MOST_ROWS_BESIDE = 18
MOST_NAMED_TICKS = 8

_Entries = tuple[list[Any], list[str]]
"""What a legend shows: the artists, and their labels."""


def plot_panels(panels: Sequence[Panel], *, title: str = "") -> "Figure":
    """Charts side by side and, from four on, in several rows.

    Points that cannot be shown (not finite, or not positive on a logarithmic axis) are skipped and leave a gap. Panels
    whose lines have the same labels share one legend.

    Args:
        panels: The charts.
        title: Above them.

    Returns:
        A figure for notebooks, or for `write_figure`.
    """
    if not panels:
        raise InputError("panels must be a list of at least one Panel, got none.")
    curves = [[curve_of(line) for line in panel.lines] for panel in panels]  # refuses before anything is drawn
    rows = math.ceil(len(panels) / MOST_COLUMNS)
    columns = math.ceil(len(panels) / rows)
    figure = new_figure(PANEL_WIDTH * columns, PANEL_HEIGHT * rows)
    if title:
        figure.suptitle(plain(title), fontweight="bold", color=INK, parse_math=False)
    legends = [_draw(figure.add_subplot(rows, columns, i + 1), panel, curves[i]) for i, panel in enumerate(panels)]
    _add_legends(figure, legends, columns)
    return figure


def _add_legends(figure: "Figure", legends: Sequence[_Entries], columns: int) -> None:
    """Below the figure for labels that several panels share, otherwise inside its panel, or next to it if long."""
    labels = [tuple(words) for _, words in legends]
    shared = next((words for words in labels if labels.count(words) > 1), ())
    if shared:
        ncols = min(len(shared), 3 * columns)
        figure.set_figheight(figure.get_figheight() + ENTRY_HEIGHT * math.ceil(len(shared) / ncols))
        _legend(figure, *legends[labels.index(shared)], loc="outside lower center", ncols=ncols)
    for axes, (handles, words) in zip(figure.axes, legends, strict=True):
        if tuple(words) == shared:
            continue
        if len(words) <= MOST_ENTRIES_INSIDE:
            _legend(axes, handles, words, loc="best")
        else:
            ncols = math.ceil(len(words) / MOST_ROWS_BESIDE)
            figure.set_figwidth(figure.get_figwidth() + ENTRY_WIDTH * ncols)
            _legend(axes, handles, words, loc="upper left", bbox_to_anchor=(1, 1), ncols=ncols)


def _draw(axes: "Axes", panel: Panel, curves: Sequence[Curve]) -> _Entries:
    """One chart; returns what its legend shows."""
    dress(axes, panel.title, panel.x_label, panel.y_label)
    shown = [_showable(curve, panel) for curve in curves]
    if panel.log_y:
        axes.set_yscale("log")
    if panel.log_x:
        _logarithmic(axes, np.concatenate([np.empty(0), *(curve.x for curve in shown)]))
    handles, labels = [], []
    for rank, curve in enumerate(shown):
        if curve.has_error:
            _draw_band(axes, curve, LIGHT_COLOURS[rank % len(LIGHT_COLOURS)], panel.log_y)
        handles += [_draw_line(axes, curve, rank)]
        labels += [curve.label]
    for label, value in panel.reference.items():
        if np.isfinite(curve_of(Line(label, [0], [value])).y[0]) and (value > 0 or not panel.log_y):
            handles += [axes.axhline(value, color=QUIET, linestyle=(0, (6, 4)), linewidth=1.2)]
            labels += [label]
    if not any(np.isfinite(curve.y).any() for curve in shown):
        axes.text(0.5, 0.5, "no finite values to show", color=QUIET, ha="center", transform=axes.transAxes)
    return handles, [plain(label) for label in labels]


def _showable(curve: Curve, panel: Panel) -> Curve:
    """The curve, with NaN for both coordinates of the points that its panel cannot show."""
    visible = np.isfinite(curve.x) & np.isfinite(curve.y)
    visible &= ((curve.x > 0) | (not panel.log_x)) & ((curve.y > 0) | (not panel.log_y))
    return curve._replace(x=np.where(visible, curve.x, np.nan), y=np.where(visible, curve.y, np.nan))


def _draw_line(axes: "Axes", curve: Curve, rank: int) -> Any:
    visible = np.isfinite(curve.y)
    all_marked = np.count_nonzero(visible) <= MOST_MARKED_POINTS
    # In a long line a lone point between two gaps would be invisible without its mark.
    alone = visible & ~np.append(visible[1:], False) & ~np.append(False, visible[:-1])
    [line] = axes.plot(
        curve.x,
        curve.y,
        color=LIGHT_COLOURS[rank % len(LIGHT_COLOURS)],
        linestyle=DASHES[rank // len(LIGHT_COLOURS) % len(DASHES)],
        linewidth=1.6,
        marker=MARKS[rank % len(MARKS)] if all_marked or alone.any() else None,
        markersize=5,
        markeredgecolor=LIGHT_PAPER,
        markeredgewidth=0.5,
        markevery=None if all_marked else np.flatnonzero(alone).tolist(),
    )
    return line


def _draw_band(axes: "Axes", curve: Curve, colour: str, log_y: bool) -> None:
    """One standard error to both sides; a lower end that a logarithm cannot show is put far below the points."""
    low, high = curve.y - curve.error, curve.y + curve.error
    if log_y:
        low = np.where(low > 0, low, curve.y / 10)
    known = np.isfinite(curve.y) & np.isfinite(curve.error)
    axes.fill_between(curve.x, low, high, where=known.tolist(), color=colour, alpha=0.18, linewidth=0)


def _logarithmic(axes: "Axes", places: NDArray[np.float64]) -> None:
    """Numbers of particles are named as they are: marks at powers of ten would lie between them."""
    values = np.unique(places[np.isfinite(places)])
    powers_of_two = bool(len(values)) and bool((np.frexp(values)[0] == 0.5).all())
    axes.set_xscale("log", base=2 if powers_of_two else 10)
    if 0 < len(values) <= MOST_NAMED_TICKS and (values == np.rint(values)).all() and values[-1] < 1e6:
        axes.set_xticks(values, [f"{value:,.0f}" for value in values])
        axes.set_xticks([], minor=True)


def _legend(owner: Any, handles: list[Any], labels: list[str], **place: Any) -> None:
    if not handles:
        return
    # A label that begins with an underscore would be left out, so the words are set afterwards.
    legend = owner.legend(
        handles,
        [str(i) for i in range(len(handles))],
        fontsize=8,
        frameon=True,
        framealpha=0.8,
        edgecolor="none",
        **place,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set(text=label, parse_math=False, color=INK)
