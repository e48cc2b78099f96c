"""`fivo report`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def report(
    *runs: Path,
    out: Path | None = None,
    format: Literal["html", "md", "csv", "latex"] = "html",
    audio: Annotated[bool, Parameter(negative="--no-audio")] = True,
) -> None:
    """One page that needs nothing else, or tables alone, from what sweeps and runs left.

    Parameters
    ----------
    runs
        Directories of sweeps or runs, or summaries (NAME.json) of sweeps.
    out
        The file to write. [tables go to standard output]
    format
        A page, or tables as Markdown, CSV or LaTeX.
    audio
        Music to listen to on the page.
    """
    from fivo.errors import InputError
    from fivo.files import write_atomically
    from fivo.report import as_csv, as_latex, as_markdown, read_sources, report_page

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
        text = {"md": as_markdown, "csv": as_csv, "latex": as_latex}[format](*sources.summaries)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode())
        print(f"wrote {out}: {len(sources.summaries)} experiments, {len(sources.runs)} runs, {len(text) / 1e6:.1f} MB")
