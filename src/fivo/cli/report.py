"""`fivo report`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def report(
    *runs: Path,
    out: Path | None = None,
    format: Literal["html", "md", "csv", "latex", "json"] = "html",
    audio: Annotated[bool, Parameter(negative="--no-audio")] = True,
) -> None:
    """Write one self-contained page, or only the tables, from the results of sweeps and runs.

    Parameters
    ----------
    runs
        Directories of sweeps or runs, or summaries (NAME.json) of sweeps. Parts of one experiment are joined; where
        several have the same cell, the last one counts.
    out
        The file to write. [tables are printed]
    format
        A page, the tables as Markdown, CSV or LaTeX, or the joined summary of one experiment as JSON.
    audio
        Put music to listen to on the page.
    """
    from fivo._terminal.output import say, say_lines
    from fivo.errors import InputError
    from fivo.files import write_atomically
    from fivo.report import as_csv, as_json, as_latex, as_markdown, read_sources, report_page
    from fivo.report.damage import refusing_damage

    if not runs:
        raise InputError("no runs were given; give the directory of at least one sweep or run, such as runs/music.")
    if out is None and format == "html":
        raise InputError("a page needs --out; use --out report.html, for example.")
    sources = read_sources(runs)
    if format == "html":
        text = report_page(sources, audio=audio)
    else:
        if not sources.summaries:
            raise InputError("the given directories hold runs but no sweep, so there are no tables; use --format html.")
        written = {"md": as_markdown, "csv": as_csv, "latex": as_latex, "json": as_json}[format]
        with refusing_damage():
            text = written(*sources.summaries)
    content = text.encode(errors="replace")  # names of files may be no text
    if out is None:
        if sys.stdout.isatty():
            say_lines(text)
        else:
            sys.stdout.buffer.write(content)
    else:
        write_atomically(out, content)
        say(f"wrote {out}: {len(sources.summaries)} experiments, {len(sources.runs)} runs, {len(text) / 1e6:.1f} MB")
