"""One page that shows everything: tables compared with the paper's, curves, figures and music, in a single file."""

import base64
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fivo import __version__
from fivo.errors import InputError
from fivo.extras import require
from fivo.report.answers import answers
from fivo.report.chartdata import Charts, add_figures, add_series, add_training
from fivo.report.damage import refusing_damage
from fivo.report.grid import Grid, arranged, heading, number_text, signed, spread_text
from fivo.report.pianoroll import write_pianoroll
from fivo.report.reading import RunFiles, Sources
from fivo.report.roll import as_pianoroll, held_notes
from fivo.report.sound import write_wav
from fivo.report.style import DARK_COLOURS, LIGHT_COLOURS

PARTS = Path(__file__).parent / "page_parts"
UPLOT = Path(__file__).parent / "vendor" / "uplot"
SOUND_RATE = 11025
MOST_PIECES = 4
MOST_DRAWN_RUNS = 4
"""Runs whose forecasts, filled gaps, states and alarms are drawn."""
SCRIPTS = ("chart.js", "downloads.js", "tables.js", "page.js")


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
    charts = Charts()
    figures = add_figures(charts, sources)
    series = [kept for run in sources.runs[:MOST_DRAWN_RUNS] for kept in add_series(charts, run)]
    training = add_training(charts, sources.runs)
    pieces = _pieces(sources, audio)
    data = {"charts": charts.data, "rolls": {piece["id"]: piece.pop("notes") for piece in pieces}}
    return {
        "title": _title(sources),
        "version": __version__,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "answers": answers(sources, series),
        "tables": [(summary, _grid(summary)) for summary in sources.summaries if summary["cells"]],
        "figures": figures,
        "training": training,
        "pieces": pieces,
        "series": series,
        "runs": sources.runs,
        "data": data,
        # Not of the data, and inserted as they are: none may contain what would end its element.
        "style": _part(UPLOT / "uPlot.min.css") + _part(PARTS / "page.css"),
        "charting": _part(UPLOT / "uPlot.iife.min.js") if charts.data else "",
        "scripts": [_part(PARTS / name) for name in SCRIPTS],
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
        first.setdefault((run.settings.get("dataset"), run.settings.get("bound")), run)
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
                    "id": f"{run.label}-{name}",
                    "notes": _notes(roll),
                    "run": run.label,
                    "name": "data (test)" if name == "data" else "sample of the model",
                    "picture": _embedded(picture, "image/png"),
                    "sound": _compressed(sound) if audio else None,
                }
            )
    return pieces


def _notes(roll: Any) -> list[list[int]]:
    """The notes of a pianoroll as [MIDI note, first step, steps]."""
    return [
        [int(note), int(start), int(stop - start)]
        for note, start, stop in zip(*held_notes(as_pianoroll(roll)), strict=True)
    ]


def _compressed(sound: Path) -> str:
    """A WAV file as MP3, a tenth of its size."""
    soundfile = require("soundfile", "Music on the page")
    smaller = sound.with_suffix(".mp3")
    soundfile.write(smaller, *soundfile.read(sound), format="MP3")
    return _embedded(smaller, "audio/mpeg")


def _embedded(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
