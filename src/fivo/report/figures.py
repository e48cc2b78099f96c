"""Figures as files: vector graphics and pictures, whole and the same whenever they are made from the same numbers."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fivo.errors import InputError
from fivo.extras import require
from fivo.files import replacing
from fivo.report.style import INK, LIGHT_PAPER, QUIET, RULE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
FORMATS: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}
"""What a file can be, and what its format would say about the moment or the machine."""
# What matplotlib reads from its global settings only while it writes an SVG file.
SVG_SETTINGS = {"svg.hashsalt": "fivo", "svg.fonttype": "none"}
MOST_LETTERS = 60

# Characters that XML 1.0 forbids, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SETTINGS_LOCK = threading.Lock()


def write_figure(path: str | os.PathLike[str], figure: "Figure") -> None:
    """Write a matplotlib figure, a whole file or none.

    Text stays text in SVG. The file has neither a date nor random names, so equal figures make equal files.

    Args:
        path: The file: .svg, .pdf or .png.
        figure: The figure.
    """
    suffix = check_figure(path)
    with replacing(path) as file, _settings(SVG_SETTINGS if suffix == ".svg" else {}):
        figure.savefig(file, format=suffix[1:], metadata=FORMATS[suffix], dpi=DOTS_PER_INCH, facecolor=LIGHT_PAPER)


def check_figure(path: str | os.PathLike[str]) -> str:
    """Refuse a file that no figure can be written to, and a missing matplotlib.

    Args:
        path: The file.

    Returns:
        Its suffix.
    """
    require("matplotlib", "Plotting")
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A figure must be written as {', '.join(FORMATS)}, got {os.fspath(path)!r:.120}.")
    return suffix


@contextmanager
def _settings(values: dict[str, Any]) -> Iterator[None]:
    """Those of matplotlib's settings, one thread at a time; not `rc_context`, which puts all others back as well."""
    settings = require("matplotlib", "Writing figures").rcParams
    with _SETTINGS_LOCK:
        before = {name: settings[name] for name in values}
        settings.update(values)
        try:
            yield
        finally:
            settings.update(before)


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of so many inches, which belongs to no window and to no global list of figures."""
    figures = require("matplotlib.figure", "Plotting")
    return figures.Figure(figsize=(width, height), layout="constrained", facecolor=LIGHT_PAPER)


def dress(axes: "Axes", title: str, x_label: str, y_label: str) -> None:
    """Title, labels and quiet axes."""
    axes.set_title(plain(title), loc="left", fontsize=11, fontweight="bold", color=INK, parse_math=False)
    axes.set_xlabel(plain(x_label), color=INK, parse_math=False)
    axes.set_ylabel(plain(y_label), color=INK, parse_math=False)
    axes.tick_params(colors=QUIET, labelcolor=QUIET, which="both")
    axes.grid(True, axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(QUIET)


def plain(text: str) -> str:
    """`text` on one line, as every file can hold it; long ones are cut with an ellipsis."""
    shown = _FORBIDDEN.sub("\ufffd", " ".join(text.split()))
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1] + "…"
