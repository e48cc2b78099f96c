"""One chart, drawn as SVG: axes, bands, lines, marks, reference lines and a legend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fivo.report.lines import Curve, Panel, curve_of
from fivo.report.style import NUM_COLOURS, TEXT_SIZE, TITLE_SIZE
from fivo.report.svg import element, number, shortened, text_of, text_width
from fivo.report.ticks import Axis, axis_of, showable

EDGE = 16
LEFT, RIGHT, TOP, BOTTOM = 40, 24, 40, 48
LINE_HEIGHT = TEXT_SIZE + 2
LEGEND_TOP, LEGEND_ROW = 46, 20
SWATCH, SWATCH_GAP = 26, 6
Y_TICK_DISTANCE = 32
X_TICK_DISTANCE, X_TICK_GAP = 32, 16
WIDEST_REFERENCE_LABEL = 0.3
MOST_MARKED_POINTS = 40
DASHES = ("", "7 4", "2 4", "9 4 2 4")
# Outlines around (0, 0), so that lines differ in more than colour.
MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -4.6L4.6 3.5H-4.6z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.6L4.6 -3.5H-4.6z",
    "M-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
)


class _Frame(NamedTuple):
    """The rectangle of the data, and the way from values to pixels inside it."""

    left: float
    top: float
    width: float
    height: float
    x_axis: Axis
    y_axis: Axis

    def x(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.x_axis.place(values) * self.width

    def y(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return (1 - self.y_axis.place(values)) * self.height

    def x_of(self, value: float) -> float:
        return float(self.x(np.array([value]))[0])

    def y_of(self, value: float) -> float:
        return float(self.y(np.array([value]))[0])


class _Drawing(NamedTuple):
    """A curve, which of its points can be shown (shape [points]), and its place in the cycle of colours."""

    curve: Curve
    visible: NDArray[np.bool_]
    rank: int

    @property
    def all_marked(self) -> bool:
        return int(np.count_nonzero(self.visible)) <= MOST_MARKED_POINTS


class _Entry(NamedTuple):
    """A label of the legend, shortened to fit, and where its row begins."""

    label: str
    x: float
    y: float


def draw_panel(panel: Panel, width: float, height: float) -> str:
    """A chart of `width` by `height` pixels, as SVG without its outermost element."""
    drawings = []
    for rank, line in enumerate(panel.lines):
        curve = curve_of(line)
        visible = showable(curve.x, panel.log_x) & showable(curve.y, panel.log_y)
        # What is not shown must not enter the arithmetic of places either.
        curve = curve._replace(x=np.where(visible, curve.x, np.nan), y=np.where(visible, curve.y, np.nan))
        drawings.append(_Drawing(curve, visible, rank))
    values = np.array(list(panel.reference.values()), np.float64)
    pairs = zip(panel.reference, values.tolist(), showable(values, panel.log_y), strict=True)
    levels = {label: value for label, value, visible in pairs if visible}
    frame = _frame(panel, drawings, levels, width, height)

    data = [_draw_reference_line(frame, value) for value in levels.values()]
    data += [_draw_band(frame, drawing) for drawing in drawings]
    data += [_draw_line(frame, drawing) for drawing in drawings]
    if not any(drawing.visible.any() for drawing in drawings):
        data.append(_text("no finite values to show", frame.width / 2, frame.height / 2, "quiet middle"))
    return "".join(
        [
            _text(shortened(panel.title, TITLE_SIZE, width - 2 * EDGE), EDGE, 24, "title"),
            _draw_legend(drawings, width),
            _draw_axes(frame, panel.x_label, panel.y_label),
            _draw_reference_labels(frame, levels, width),
            # An inner <svg> cuts what leaves the plot, without an id that a second chart on the page could repeat.
            element("svg", *data, x=frame.left, y=frame.top, width=frame.width, height=frame.height),
        ]
    )


def _frame(
    panel: Panel, drawings: Sequence[_Drawing], levels: Mapping[str, float], width: float, height: float
) -> _Frame:
    """The data's rectangle, after the margins have what ticks and the labels of reference lines need."""
    top = TOP + legend_height(panel, width)
    plot_height = height - top - BOTTOM
    heights = _heights(drawings, levels, panel.log_y)
    y_axis = axis_of(heights, log=panel.log_y, margin=0.05, most_ticks=int(plot_height / Y_TICK_DISTANCE))
    left = LEFT + max((text_width(tick.label, TEXT_SIZE) for tick in y_axis.ticks), default=0.0)
    labels = max((text_width(label, TEXT_SIZE) + 8 for label in levels), default=0.0)
    plot_width = width - left - RIGHT - min(labels, WIDEST_REFERENCE_LABEL * width)
    places = np.concatenate([np.empty(0), *(drawing.curve.x[drawing.visible] for drawing in drawings)])
    return _Frame(left, top, plot_width, plot_height, _x_axis(places, panel.log_x, plot_width), y_axis)


def _x_axis(places: NDArray[np.float64], log: bool, width: float) -> Axis:
    """The axis with as many marks as have room for their labels side by side."""
    most_ticks = int(width / X_TICK_DISTANCE)
    while True:
        axis = axis_of(places, log=log, margin=0.02, most_ticks=most_ticks)
        centres = axis.place(np.array([tick.value for tick in axis.ticks])) * width
        widest = max((text_width(tick.label, TEXT_SIZE) for tick in axis.ticks), default=0.0)
        if most_ticks == 2 or (np.diff(centres) >= widest + X_TICK_GAP).all():
            return axis
        most_ticks -= 1


def _heights(drawings: Sequence[_Drawing], levels: Mapping[str, float], log: bool) -> NDArray[np.float64]:
    """All values that the vertical axis must reach, ends of bands included."""
    parts = [np.array(list(levels.values()), np.float64)]
    for curve, visible, _ in drawings:
        # A band that reaches zero has no lower end on a logarithmic axis: the axis leaves it out, the frame cuts it.
        ends = (curve.y, curve.y + curve.error, curve.y - curve.error)
        parts += [values[visible & showable(values, log)] for values in ends]
    return np.concatenate(parts)


def _text(content: str, x: int | float, y: int | float, class_: str = "", **attributes: str) -> str:
    return element("text", text_of(content), x=x, y=y, class_=class_, **attributes)


def legend_height(panel: Panel, width: float) -> float:
    """What the rows of the legend add to a chart of `width` pixels."""
    entries = list(_legend_entries([line.label for line in panel.lines], width))
    return entries[-1].y - LEGEND_TOP + LEGEND_ROW if entries else 0.0


def _legend_entries(labels: Sequence[str], width: float) -> Iterator[_Entry]:
    x, y = float(EDGE), float(LEGEND_TOP)
    for label in labels:
        short = shortened(label, TEXT_SIZE, width - 2 * EDGE - SWATCH - SWATCH_GAP)
        entry_width = SWATCH + SWATCH_GAP + text_width(short, TEXT_SIZE)
        if x > EDGE and x + entry_width > width - EDGE:
            x, y = float(EDGE), y + LEGEND_ROW
        yield _Entry(short, x, y)
        x += entry_width + EDGE


def _draw_legend(drawings: Sequence[_Drawing], width: float) -> str:
    parts = []
    entries = _legend_entries([drawing.curve.label for drawing in drawings], width)
    for drawing, (label, x, y) in zip(drawings, entries, strict=True):
        parts.append(_stroke(f"M{number(x)} {number(y - 4)}h{SWATCH}", drawing.rank))
        if drawing.all_marked:
            parts.append(_mark(x + SWATCH / 2, y - 4, drawing.rank))
        parts.append(_text(label, x + SWATCH + SWATCH_GAP, y))
    return "".join(parts)


def _draw_axes(frame: _Frame, x_label: str, y_label: str) -> str:
    right, bottom = frame.left + frame.width, frame.top + frame.height
    parts = []
    for tick in frame.y_axis.ticks:
        y = frame.top + frame.y_of(tick.value)
        parts.append(element("path", class_="grid", d=f"M{number(frame.left)} {number(y)}H{number(right)}"))
        parts.append(_text(tick.label, frame.left - 8, y + 4, "quiet end"))
    for tick in frame.x_axis.ticks:
        x = frame.left + frame.x_of(tick.value)
        parts.append(element("path", class_="axis", d=f"M{number(x)} {number(bottom)}v5"))
        parts.append(_text(tick.label, x, bottom + 19, "quiet middle"))
    for value in frame.x_axis.minor:
        x = frame.left + frame.x_of(value)
        parts.append(element("path", class_="axis", d=f"M{number(x)} {number(bottom)}v3"))
    parts.append(element("path", class_="axis", d=f"M{number(frame.left)} {number(bottom)}H{number(right)}"))
    parts.append(_text(shortened(x_label, TEXT_SIZE, frame.width), frame.left + frame.width / 2, bottom + 39, "middle"))
    middle = frame.top + frame.height / 2
    turn = f"rotate(-90 {EDGE + 2} {number(middle)})"
    parts.append(_text(shortened(y_label, TEXT_SIZE, frame.height), EDGE + 2, middle, "middle", transform=turn))
    return "".join(parts)


def _draw_band(frame: _Frame, drawing: _Drawing) -> str:
    curve = drawing.curve
    if not curve.has_error:
        return ""
    outlines = []
    for run in _runs(drawing.visible & np.isfinite(curve.error)):
        x = frame.x(curve.x[run])
        above, below = frame.y((curve.y + curve.error)[run]), frame.y((curve.y - curve.error)[run])
        outlines.append(_path(np.concatenate([x, x[::-1]]), np.concatenate([above, below[::-1]])) + "z")
    return element("path", class_=f"band fill{drawing.rank % NUM_COLOURS}", d="".join(outlines))


def _draw_line(frame: _Frame, drawing: _Drawing) -> str:
    curve, visible, rank = drawing
    x, y = frame.x(curve.x), frame.y(curve.y)
    runs = list(_runs(visible))
    parts = [_stroke("".join(_path(x[run], y[run]) for run in runs), rank)]
    # In a long line a lone point between two gaps would be invisible without its mark.
    alone = [run.start for run in runs if run.stop - run.start == 1]
    for point in np.flatnonzero(visible) if drawing.all_marked else alone:
        error = f" ± {curve.error[point]:.4g}" if curve.has_error else ""
        words = f"{curve.label}: {curve.y[point]:.6g}{error} at {curve.x[point]:.6g}"
        parts.append(_mark(x[point], y[point], rank, element("title", text_of(words))))
    return "".join(parts)


def _draw_reference_line(frame: _Frame, value: float) -> str:
    return element("path", class_="reference", d=f"M0 {number(frame.y_of(value))}H{number(frame.width)}")


def _draw_reference_labels(frame: _Frame, levels: Mapping[str, float], width: float) -> str:
    """Labels to the right of their lines; a label that would cover the one above it moves down."""
    left = frame.left + frame.width + 8
    labels, baseline = [], 0.0
    for label, value in sorted(levels.items(), key=lambda item: -item[1]):
        baseline = max(baseline + LINE_HEIGHT, frame.top + frame.y_of(value) + 4)
        labels.append(_text(shortened(label, TEXT_SIZE, width - left - 4), left, baseline, "quiet"))
    return "".join(labels)


def _runs(visible: NDArray[np.bool_]) -> Iterator[slice]:
    """Unbroken runs of points."""
    edges = np.flatnonzero(np.diff(visible.astype(np.int8), prepend=0, append=0))
    for start, stop in edges.reshape(-1, 2).tolist():
        yield slice(start, stop)


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return "M" + "L".join(f"{number(a)} {number(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _stroke(outline: str, rank: int) -> str:
    dash = DASHES[rank // NUM_COLOURS % len(DASHES)]
    return element("path", class_=f"line line{rank % NUM_COLOURS}", d=outline, stroke_dasharray=dash)


def _mark(x: float, y: float, rank: int, *content: str) -> str:
    place = f"translate({number(x)} {number(y)})"
    shape = MARKS[rank % len(MARKS)]
    return element("path", *content, class_=f"mark fill{rank % NUM_COLOURS}", d=shape, transform=place)
