"""One page that shows everything: tables beside the paper's, curves, figures and music, in a single file."""

import base64
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fivo import __version__
from fivo.errors import InputError
from fivo.extras import require
from fivo.report.damage import refusing_damage
from fivo.report.figures import write_figure
from fivo.report.grid import Grid, arranged, heading, number_text, signed, spread_text
from fivo.report.measures import MEASURES
from fivo.report.pianoroll import write_pianoroll
from fivo.report.reading import RunFiles, Sources, curves
from fivo.report.series import plot_anomaly, plot_forecast
from fivo.report.sound import write_wav
from fivo.report.style import DARK_COLOURS, LIGHT_COLOURS
from fivo.report.tracks import Track
from fivo.runs import Alarms

PARTS = Path(__file__).parent / "page_parts"
UPLOT = Path(__file__).parent / "vendor" / "uplot"
SOUND_RATE = 11025
MOST_PIECES = 4
MOST_DRAWINGS = 8


def report_page(sources: Sources, *, audio: bool = True) -> str:
    """Make the report page: no network, no other files, and nothing of the data run as code.

    Args:
        sources: What `read_sources` found.
        audio: Whether music can be heard on it.

    Returns:
        HTML.
    """
    jinja2 = require("jinja2", "The report page")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PARTS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number_text, "signed": signed, "heading": heading, "spread": spread_text}
    with refusing_damage(jinja2.UndefinedError):
        return environment.get_template("page.html").render(_content(sources, audio))


def _content(sources: Sources, audio: bool) -> dict[str, Any]:
    charts, data = _charts(sources)
    return {
        "title": _title(sources),
        "version": __version__,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "tables": [(summary, _grid(summary)) for summary in sources.summaries if summary["cells"]],
        "figures": [(summary, charts[summary["name"]]) for summary in sources.summaries if summary["name"] in charts],
        "curves": charts.get("", []),
        "pieces": _pieces(sources, audio),
        "drawings": [drawing for run in sources.runs for drawing in _drawings(run)][:MOST_DRAWINGS],
        "runs": sources.runs,
        "data": data,
        # Not of the data, and inserted as they are: none may contain what would end its element.
        "style": _part(UPLOT / "uPlot.min.css") + _part(PARTS / "page.css"),
        "charting": _part(UPLOT / "uPlot.iife.min.js") if data else "",
        "script": _part(PARTS / "page.js"),
        "colours": list(zip(LIGHT_COLOURS, DARK_COLOURS, strict=True)),
    }


def _part(path: Path) -> Any:
    return require("markupsafe", "The report page").Markup(path.read_text())


def _title(sources: Sources) -> str:
    places = [summary["place"] for summary in sources.summaries]
    return " · ".join(places) if places else f"{len(sources.runs)} runs"


def _grid(summary: dict[str, Any]) -> Grid:
    grid = arranged(summary)
    return grid._replace(notes=[note.replace("\\*", "*") for note in grid.notes])


def _charts(sources: Sources) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """The places of charts on the page, by experiment ("" for the runs), and what the script draws there."""
    places: dict[str, list[str]] = {}
    data = []

    def add(owner: str, title: str, label: str, lines: list[dict[str, Any]], log: bool = False) -> None:
        identity = f"chart{len(data)}"
        places.setdefault(owner, []).append(identity)
        data.append({"id": identity, "group": owner, "title": title, "y": label, "lines": lines, "log": log})

    for summary in sources.summaries:
        for panel in summary["figure"] or []:
            if panel["lines"]:
                # A panel named like its figure is under that heading already.
                named = panel["title"] != summary["title"]
                words = (panel["title"], panel["y_label"]) if named else (panel["y_label"], "")
                add(summary["name"], *words, panel["lines"])
    runs = curves(sources.runs)
    for field, measure in MEASURES.items():
        lines = [{"label": run["label"], **run["lines"][field]} for run in runs if run["lines"][field]["x"]]
        if lines:
            add("", measure.heading, "", lines, measure.log)
    return places, data


def _pieces(sources: Sources, audio: bool) -> list[dict[str, Any]]:
    """A few runs' music, data before samples; those that an experiment selected come first."""
    chosen = {
        evidence["run"] for summary in sources.summaries for cell in summary["cells"] for evidence in cell["selected"]
    }
    runs = sorted((run for run in sources.runs if run.excerpt), key=lambda run: run.directory.name not in chosen)
    return [piece for run in _distinct(runs)[:MOST_PIECES] for piece in _music(run, audio)]


def _distinct(runs: list[RunFiles]) -> list[RunFiles]:
    """The first run of each dataset and bound, then the others."""
    first: dict[tuple[Any, Any], RunFiles] = {}
    for run in runs:
        data, bound = (run.config.get(section, {}) for section in ("data", "bound"))
        first.setdefault((data.get("dataset"), bound.get("kind")), run)
    labels = {run.label for run in first.values()}
    return [*first.values(), *(run for run in runs if run.label not in labels)]


def _music(run: RunFiles, audio: bool) -> list[dict[str, Any]]:
    pieces = []
    require("matplotlib", "The report page")
    with tempfile.TemporaryDirectory() as folder:
        for name, roll in (run.excerpt or {}).items():
            picture, sound = Path(folder, f"{name}.png"), Path(folder, f"{name}.wav")
            try:
                write_pianoroll(picture, roll)
                if audio:
                    write_wav(sound, roll, steps_per_quarter=run.steps_per_quarter, rate=SOUND_RATE)
            except InputError:
                continue  # an excerpt that somebody damaged is not worth the page
            pieces.append(
                {
                    "run": run.label,
                    "name": "data (test)" if name == "data" else "sample of the model",
                    "picture": _embedded(picture, "image/png"),
                    "sound": _embedded(sound, "audio/wav") if audio else None,
                }
            )
    return pieces


def _drawings(run: RunFiles) -> list[dict[str, Any]]:
    """What was last drawn of tables with a run."""
    found = []
    for what, kept in (("forecast", run.forecasts), ("alarms", run.alarms)):
        if kept is None or not kept.tracks:
            continue
        tracks = [Track.of(record) for record in kept.tracks]
        if isinstance(kept, Alarms):
            figure = plot_anomaly(tracks, rate=kept.rate, time_label=kept.time_label)
        else:
            figure = plot_forecast(tracks, time_label=kept.time_label)
        with tempfile.TemporaryDirectory() as folder:
            write_figure(Path(folder, "drawing.png"), figure)
            picture = _embedded(Path(folder, "drawing.png"), "image/png")
        found.append({"run": run.label, "what": what, "table": kept.table, "picture": picture})
    return found


def _embedded(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
