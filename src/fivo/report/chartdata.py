"""What the script of the report page draws: charts as plain values that JSON can hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fivo.report.measures import MEASURES
from fivo.report.reading import RunFiles, Sources, curves
from fivo.report.tracks import Track
from fivo.runs import Alarms, Drawing, FilledGaps, LatentStates

MOST_TRACKS = 8
"""Quantities of series that are drawn of one table by one command."""
MEANS: dict[type[Drawing], str] = {Alarms: "expected", FilledGaps: "imputed", LatentStates: "mean"}
"""What the mean of a track is called; else it is a forecast."""


class Charts:
    """The charts of a page. Those of one group share a legend and colours."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def add(self, group: str, title: str, lines: list[dict[str, Any]], **spec: Any) -> str:
        """Add a chart.

        Args:
            group: The group it belongs to.
            title: Its heading.
            lines: Each with `label`, `x`, `y`, and optionally `kind` and `name`.
            **spec: `y` and `x`, the labels of its axes; `time`, for an axis of dates; `log`, for a logarithmic axis.

        Returns:
            The identity of its element.
        """
        spec = {"y": "", "x": "step", "time": False, "log": False} | spec
        self.data.append({"id": f"chart{len(self.data)}", "group": group, "title": title, "lines": lines} | spec)
        return self.data[-1]["id"]


def add_figures(charts: Charts, sources: Sources) -> list[tuple[dict[str, Any], list[str]]]:
    """The figures of experiments: each summary that has one, and its charts."""
    found = []
    for summary in sources.summaries:
        places = []
        for panel in summary["figure"] or []:
            if panel["lines"]:
                # A panel named like its figure is under that heading already.
                named = panel["title"] != summary["title"]
                title, label = (panel["title"], panel["y_label"]) if named else (panel["y_label"], "")
                places.append(charts.add(summary["name"], title, panel["lines"], y=label))
        if places:
            found.append((summary, places))
    return found


def add_training(charts: Charts, files: list[RunFiles]) -> list[dict[str, str]]:
    """The curves of runs, one chart for each measure, with what the measure means."""
    found = []
    runs = curves(files)
    for field, measure in MEASURES.items():
        lines = [{"label": run["label"], **run["lines"][field]} for run in runs if run["lines"][field]["x"]]
        if lines:
            place = charts.add("", measure.heading, lines, log=measure.log)
            found.append({"id": place, "meaning": measure.meaning})
    return found


def add_series(charts: Charts, run: RunFiles) -> list[dict[str, Any]]:
    """What was last drawn of tables with a run: forecasts, filled gaps, states, and alarms with their p-values."""
    found = []
    for kept in run.drawings:
        if not kept.tracks:
            continue
        tracks = [Track.of(record) for record in kept.tracks]
        group = f"{run.label} {kept.KIND}"
        rate = kept.rate if isinstance(kept, Alarms) else None
        ids = [_add_track(charts, group, track, kept, rate) for track in tracks[:MOST_TRACKS]]
        if rate is not None:
            scored = {track.series: track for track in tracks if track.p_values is not None}
            ids += [_add_p_values(charts, group, track, kept, rate) for track in list(scored.values())[:MOST_TRACKS]]
        heading, about = _words(kept, run.label)
        found.append(
            {
                "heading": heading,
                "about": about,
                "run": run.label,
                "table": kept.table,
                "ids": ids,
                "left": max(0, len(tracks) - MOST_TRACKS),
                "rate": rate,
                "alarms": None if rate is None else sum(_alarms(track, rate) for track in _by_series(tracks)),
                "rows": sum(len(np.asarray(track.times)) for track in _by_series(tracks)),
            }
        )
    return found


def _words(kept: Drawing, run: str) -> tuple[str, str]:
    """The heading of what was drawn, and a sentence about it."""
    share = "a shaded band holds the stated share of the"
    if isinstance(kept, FilledGaps):
        return "Filled gaps", f"What {run} fills gaps with, given all other cells; {share} draws."
    if isinstance(kept, LatentStates):
        rows = "all rows" if kept.given == "smoothed" else "the rows so far"
        return f"{kept.given.capitalize()} states", f"Latent states of {run} given {rows}; {share} probability."
    return "Alarms" if isinstance(kept, Alarms) else "Forecast", f"What {run} expects to follow; {share} forecasts."


def _by_series(tracks: list[Track]) -> list[Track]:
    return list({track.series: track for track in tracks}.values())


def _alarms(track: Track, rate: float) -> int:
    return int((track.numbers("p_values") <= rate).sum())


def _add_track(charts: Charts, group: str, track: Track, kept: Drawing, rate: float | None) -> str:
    x, time = _times(track)
    observed = track.numbers("observed")
    lines = []
    for share, low, high in track.intervals:
        label = f"{100 * share:.3g} % interval"
        lines.append({"label": label, "name": f"{label}, lower end", "kind": "low", "x": x, "y": _plain(low)})
        lines.append({"label": label, "name": f"{label}, upper end", "kind": "high", "x": x, "y": _plain(high)})
    if np.isfinite(track.numbers("mean")).any():
        label = MEANS.get(type(kept), "forecast")
        lines.append({"label": label, "kind": "mean", "x": x, "y": _plain(track.numbers("mean"))})
    if track.observed is not None:
        lines.append({"label": "observed", "kind": "observed", "x": x, "y": _plain(observed)})
    if rate is not None:
        raised = np.where(track.numbers("p_values") <= rate, observed, np.nan)
        lines.append({"label": "alarm", "kind": "alarm", "x": x, "y": _plain(raised)})
    return charts.add(group, _title(track), lines, y=track.quantity, x=kept.time_label, time=time)


def _add_p_values(charts: Charts, group: str, track: Track, kept: Drawing, rate: float) -> str:
    x, time = _times(track)
    p = track.numbers("p_values")
    lines = [
        {"label": "p-value", "kind": "dots", "x": x, "y": _plain(p)},
        {"label": "alarm", "kind": "alarm", "x": x, "y": _plain(np.where(p <= rate, p, np.nan))},
        {"label": f"false-alarm rate {rate:g}", "kind": "rate", "x": [x[0], x[-1]], "y": [rate, rate]},
    ]
    title = f"{track.series}: p-values" if track.series else "p-values"
    return charts.add(group, title, lines, y="p-value", x=kept.time_label, time=time, log=True)


def _title(track: Track) -> str:
    return f"{track.series}: {track.quantity}" if track.series else track.quantity


def _times(track: Track) -> tuple[list[float], bool]:
    """Times as numbers, dates in seconds since 1970, and whether they are dates."""
    times = np.asarray(track.times)
    if times.dtype.kind == "M":
        return (times.astype("datetime64[us]").astype(np.int64) / 1e6).tolist(), True
    return times.astype(np.float64).tolist(), False


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]
