"""Who descends from whom in a particle filter, drawn like Figure 1 of the paper."""

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fivo.errors import InputError
from fivo.files import write_atomically
from fivo.report.style import TITLE_SIZE
from fivo.report.svg import document, element, number, shortened, text_of

STEP, ROW, EDGE, TOP, BOTTOM = 36.0, 22.0, 28.0, 56.0, 44.0
LARGEST_DOT, SMALLEST_DOT = 9.0, 1.5
MOST_STEPS = 60
NARROWEST = 420.0


def write_lineage(
    path: str | os.PathLike[str], ancestors: ArrayLike, weights: ArrayLike, resampled: ArrayLike, *, title: str
) -> None:
    """Write an SVG file: a column of particles per step, dots by weight, lines to those that continue them.

    `ancestors` [time, particle] holds, for every particle of the next step, whom it continues; `weights`
    [time, particle] are those before resampling and `resampled` [time] says where resampling followed. Lines that lead
    to the last step are coloured. Of long sequences the first 60 steps are drawn.
    """
    parents, shares, moments = np.asarray(ancestors), np.asarray(weights, np.float64), np.asarray(resampled, bool)
    if parents.ndim != 2 or shares.shape != parents.shape or moments.shape != parents.shape[:1] or not parents.size:
        raise InputError(
            f"Got ancestors, weights and resampled of shapes {list(parents.shape)}, {list(shares.shape)} and "
            f"{list(moments.shape)}; expected [time, particle] twice and [time]: pass those of one sequence."
        )
    parents, shares, moments = parents[:MOST_STEPS], shares[:MOST_STEPS], moments[:MOST_STEPS]
    steps, particles = parents.shape
    width = max(NARROWEST, 2 * EDGE + STEP * max(steps - 1, 1))
    height = TOP + ROW * (particles - 1) + BOTTOM
    alive = surviving(parents)
    parts = [element("text", text_of(shortened(title, TITLE_SIZE, width - 2 * EDGE)), x=EDGE, y=24, class_="title")]
    for t in np.flatnonzero(moments[:-1]).tolist():
        place = EDGE + STEP * (t + 0.5)
        outline = f"M{number(place)} {number(TOP - 14)}V{number(height - BOTTOM + 14)}"
        parts.append(element("path", class_="reference", d=outline))
    parts += [_draw_lines(parents, alive, lively) for lively in (False, True)]  # survivors over the others
    parts += [_draw_dots(shares[t], alive[t], t) for t in range(steps)]
    foot = f"steps 1 to {steps}, left to right; a dot's area is its weight, dashes mark resampling"
    parts.append(element("text", text_of(foot), x=EDGE, y=height - 12, class_="quiet"))
    write_atomically(path, document(title, width, height, *parts))


def surviving(parents: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which particles of each step have descendants at the last one, [time, particle]."""
    alive = np.zeros(parents.shape, bool)
    alive[-1] = True
    for t in range(len(parents) - 2, -1, -1):
        alive[t, parents[t, alive[t + 1]]] = True
    return alive


def _draw_lines(parents: NDArray[np.integer], alive: NDArray[np.bool_], lively: bool) -> str:
    outline = ""
    for t in range(len(parents) - 1):
        for i in np.flatnonzero(alive[t + 1] == lively).tolist():
            x, y = _place(t, int(parents[t, i]))
            ahead, beside = _place(t + 1, i)
            outline += f"M{number(x)} {number(y)}L{number(ahead)} {number(beside)}"
    return element("path", class_="line line0" if lively else "grid", d=outline) if outline else ""


def _draw_dots(weights: NDArray[np.float64], alive: NDArray[np.bool_], t: int) -> str:
    dots = []
    for i, weight in enumerate(weights.tolist()):
        x, y = _place(t, i)
        radius = max(SMALLEST_DOT, LARGEST_DOT * weight**0.5)
        label = element("title", text_of(f"step {t + 1}, particle {i + 1}: weight {weight:.3g}"))
        colour = "mark fill0" if alive[i] else "mark quiet"
        dots.append(element("circle", label, class_=colour, cx=x, cy=y, r=radius))
    return "".join(dots)


def _place(t: int, i: int) -> tuple[float, float]:
    return EDGE + STEP * t, TOP + ROW * i
