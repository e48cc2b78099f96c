"""Who descends from whom in a particle filter, drawn like Figure 1 of the paper."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.extras import require
from fivo.report.figures import dress, new_figure, write_figure
from fivo.report.style import LIGHT_COLOURS, LIGHT_PAPER, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP, ROW, MARGIN = 0.36, 0.22, 1.2
"""Inches."""
NARROWEST = 5.0
LARGEST_DOT, SMALLEST_DOT = 160.0, 5.0
"""Areas, in square points."""
OTHERS = "#C3C8D1"
MOST_STEPS = 60


def plot_lineage(ancestors: ArrayLike, weights: ArrayLike, resampled: ArrayLike, *, title: str = "") -> "Figure":
    """A column of particles per step, dots by weight, lines to those that continue them.

    Lines that lead to the last step are coloured. Of long sequences the first 60 steps are drawn.

    Args:
        ancestors: For every particle of the next step, the one that it continues [time, particle].
        weights: Those before resampling [time, particle].
        resampled: Whether resampling followed [time].
        title: Above the drawing.

    Returns:
        A matplotlib figure.
    """
    parents, shares, moments = np.asarray(ancestors), np.asarray(weights, np.float64), np.asarray(resampled, bool)
    if parents.ndim != 2 or shares.shape != parents.shape or moments.shape != parents.shape[:1] or not parents.size:
        raise InputError(
            "ancestors and weights must have shape [time, particle] and resampled shape [time], got "
            f"{list(parents.shape)}, {list(shares.shape)} and {list(moments.shape)}; pass those of one sequence."
        )
    parents, shares, moments = parents[:MOST_STEPS], shares[:MOST_STEPS], moments[:MOST_STEPS]
    steps, particles = parents.shape
    figure = new_figure(max(NARROWEST, MARGIN + STEP * steps), MARGIN + ROW * particles)
    axes = figure.add_subplot()
    dress(axes, title, "timestep", "particle")
    axes.grid(False)
    alive = surviving(parents)
    handles = [_lines(axes, parents, ~alive, OTHERS, 0.8), _lines(axes, parents, alive, LIGHT_COLOURS[0], 1.6)]
    times, rows = np.meshgrid(np.arange(1, steps + 1), np.arange(1, particles + 1), indexing="ij")
    dots = axes.scatter(
        times.ravel(),
        rows.ravel(),
        s=np.maximum(SMALLEST_DOT, LARGEST_DOT * shares.ravel()),
        c=np.where(alive.ravel(), LIGHT_COLOURS[0], QUIET).tolist(),
        edgecolors=LIGHT_PAPER,
        linewidths=0.5,
        zorder=3,
    )
    handles += [dots, axes.vlines(1.5 + np.flatnonzero(moments[:-1]), 0.5, particles + 0.5, QUIET, "dashed", lw=0.8)]
    words = ["a line that ends", "ancestor of a last particle", "area: weight", "resampling"]
    figure.legend(handles, words, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    axes.set(xlim=(0.5, steps + 0.5), ylim=(particles + 0.7, 0.3))  # the first particle at the top
    axes.set_yticks(np.unique(np.linspace(1, particles, min(particles, 12)).astype(int)))
    return figure


def write_lineage(
    path: str | os.PathLike[str], ancestors: ArrayLike, weights: ArrayLike, resampled: ArrayLike, *, title: str = ""
) -> None:
    """Write the drawing of `plot_lineage`.

    Args:
        path: The file: .svg, .pdf or .png.
        ancestors: For every particle of the next step, the one that it continues [time, particle].
        weights: Those before resampling [time, particle].
        resampled: Whether resampling followed [time].
        title: Above the drawing.
    """
    write_figure(path, plot_lineage(ancestors, weights, resampled, title=title))


def surviving(parents: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which particles of each step have descendants at the last one, [time, particle]."""
    alive = np.zeros(parents.shape, bool)
    alive[-1] = True
    for t in range(len(parents) - 2, -1, -1):
        alive[t, parents[t, alive[t + 1]]] = True
    return alive


def _lines(axes: "Axes", parents: NDArray[np.integer], chosen: NDArray[np.bool_], colour: str, width: float) -> Any:
    """Lines from the chosen particles back to those that they continue."""
    times, children = np.nonzero(chosen[1:])
    places = [((t + 1, parents[t, i] + 1), (t + 2, i + 1)) for t, i in zip(times, children, strict=True)]
    collections = require("matplotlib.collections", "Plotting")
    return axes.add_collection(collections.LineCollection(places, colors=colour, linewidths=width))
