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
    """One page that needs nothing else, or tables alone, from what sweeps and runs left.

    Parameters
    ----------
    runs
        Directories of sweeps or runs, or summaries (NAME.json) of sweeps; parts of one experiment are joined, and where
        several have a cell the last one counts.
    out
        The file to write. [tables go to standard output]
    format
        A page, tables as Markdown, CSV or LaTeX, or the joined summary of one experiment as JSON.
    audio
        Music to listen to on the page.
    """
    from fivo.errors import InputError
    from fivo.files import write_atomically
    from fivo.report import as_csv, as_json, as_latex, as_markdown, read_sources, report_page
    from fivo.report.damage import refusing_damage

    if not runs:
        raise InputError("got no runs where at least one directory was expected; give that of a sweep, say runs/music.")
    if out is None and format == "html":
        raise InputError("got no --out where the page's file was expected; name it report.html, say.")
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
        sys.stdout.buffer.write(content)
    else:
        write_atomically(out, content)
        print(f"wrote {out}: {len(sources.summaries)} experiments, {len(sources.runs)} runs, {len(text) / 1e6:.1f} MB")
