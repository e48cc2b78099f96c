"""Line charts as SVG files, without a plotting library."""

import math
import os
from collections.abc import Mapping, Sequence

from fivo.errors import InputError
from fivo.files import write_atomically
from fivo.report.lines import Line, Panel
from fivo.report.plot import draw_panel, legend_height
from fivo.report.svg import document, element, number

__all__ = ["Line", "Panel", "line_chart", "panels"]

# Heights without the legend, whose rows are added.
WIDTH, HEIGHT = 720.0, 400.0
PANEL_WIDTH, PANEL_HEIGHT = 480.0, 360.0
MOST_COLUMNS = 3


def line_chart(
    path: str | os.PathLike[str],
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    reference: Mapping[str, int | float] | None = None,
) -> None:
    """Write one chart as an SVG file, for bright and dark pages alike; `reference` are horizontal lines by label.

    Points that cannot be shown (not finite, or not positive on a logarithmic axis) are skipped and leave a gap.
    """
    _write(path, [Panel(lines, title, x_label, y_label, log_x, log_y, reference or {})], 1, WIDTH, HEIGHT)


def panels(path: str | os.PathLike[str], charts: Sequence[Panel]) -> None:
    """Write several charts as one SVG file: side by side and, from four on, in several rows."""
    if not charts:
        raise InputError("No panels were given; expected at least one: pass a list of Panel.")
    num_rows = math.ceil(len(charts) / MOST_COLUMNS)
    _write(path, charts, math.ceil(len(charts) / num_rows), PANEL_WIDTH, PANEL_HEIGHT)


def _write(
    path: str | os.PathLike[str], charts: Sequence[Panel], columns: int, width: float, bare_height: float
) -> None:
    height = bare_height + max(legend_height(panel, width) for panel in charts)
    drawn = []
    for index, panel in enumerate(charts):
        row, column = divmod(index, columns)
        place = f"translate({number(column * width)} {number(row * height)})"
        drawn.append(element("g", draw_panel(panel, width, height), transform=place))
    total_width, total_height = columns * width, math.ceil(len(charts) / columns) * height
    title = " · ".join(panel.title for panel in charts)
    write_atomically(path, document(title, total_width, total_height, *drawn))
