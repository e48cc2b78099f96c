"""What a benchmark says: one comparison a row, as JSON for programs and as a Markdown table for people."""

import json
import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

CHECK = "check: "
"""How the work of a row begins that compares answers, not times."""
MAX_ERRORS = 4


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one sample per round, and the threads that were at work."""

    samples: Sequence[float]
    threads: str = ""
    variant: str = ""
    values: Sequence[Sequence[float]] = field(default=(), repr=False)

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(frozen=True, kw_only=True)
class Row:
    """`ours` and `theirs` are the best of all rounds; `goal` and `reached` speak of `ratio` or of `ours`."""

    work: str
    size: str
    subject: str
    peer: str
    ratio: float
    unit: str
    ours: float
    theirs: float
    ratio_of_medians: float | None = None
    ours_median: float | None = None
    theirs_median: float | None = None
    ours_threads: str = ""
    theirs_threads: str = ""
    goal: str = ""
    reached: bool | None = None
    note: str = ""


def faster(
    work: str,
    size: str,
    peer: str,
    ours: Timing,
    theirs: Timing,
    *,
    scale: float,
    unit: str,
    subject: str = "fivo",
    at_least: float | None = None,
    note: str = "",
) -> Row:
    """How many times less time ours takes; `scale` turns seconds into the unit."""
    ratio = theirs.best / ours.best
    return Row(
        work=work,
        size=size,
        subject=subject,
        peer=peer,
        ratio=ratio,
        unit=unit,
        ours=ours.best * scale,
        theirs=theirs.best * scale,
        ratio_of_medians=theirs.median / ours.median,
        ours_median=ours.median * scale,
        theirs_median=theirs.median * scale,
        ours_threads=ours.threads,
        theirs_threads=theirs.threads,
        goal="" if at_least is None else f"ratio >= {at_least:g}",
        reached=None if at_least is None else ratio >= at_least,
        note=", ".join(text for text in (theirs.variant, note) if text),
    )


def throughput(
    work: str, size: str, peer: str, ours: Timing, theirs: Timing, *, count: int, unit: str, subject: str = "fivo"
) -> Row:
    """How many times more of something ours does in a second; a call does `count` of it."""
    return Row(
        work=work,
        size=size,
        subject=subject,
        peer=peer,
        ratio=theirs.best / ours.best,
        unit=f"{unit} per second",
        ours=count / ours.best,
        theirs=count / theirs.best,
        ratio_of_medians=theirs.median / ours.median,
        ours_median=count / ours.median,
        theirs_median=count / theirs.median,
        ours_threads=ours.threads,
        theirs_threads=theirs.threads,
        note=theirs.variant,
    )


def part(
    work: str,
    size: str,
    subject: str,
    peer: str,
    ours: float,
    theirs: float,
    unit: str,
    *,
    at_most: float | None = None,
    threads: str = "",
    note: str = "",
) -> Row:
    """Ours as a multiple of theirs: growth, or the fraction of a limit."""
    ratio = ours / theirs if theirs else math.inf
    return Row(
        work=work,
        size=size,
        subject=subject,
        peer=peer,
        ratio=ratio,
        unit=unit,
        ours=ours,
        theirs=theirs,
        ours_threads=threads,
        theirs_threads=threads,
        goal="" if at_most is None else f"ratio <= {at_most:g}",
        reached=None if at_most is None else ratio <= at_most,
        note=note,
    )


def amount(
    work: str,
    size: str,
    subject: str,
    peer: str,
    ours: float,
    theirs: float,
    unit: str,
    *,
    limit: float | None = None,
    threads: str = "",
    note: str = "",
) -> Row:
    """A number with a limit of its own; the ratio is how many times more the peer has."""
    return Row(
        work=work,
        size=size,
        subject=subject,
        peer=peer,
        ratio=theirs / ours if ours else math.inf,
        unit=unit,
        ours=ours,
        theirs=theirs,
        ours_threads=threads,
        theirs_threads=threads,
        goal="" if limit is None else f"ours <= {limit:g}",
        reached=None if limit is None else ours <= limit,
        note=note,
    )


def apart(
    what: str, size: str, subject: str, peer: str, ours: float, theirs: float, error: float, *, note: str = ""
) -> Row:
    """A check of answers: the ratio is their distance in standard errors."""
    ratio = abs(ours - theirs) / error
    return Row(
        work=f"{CHECK}{what}",
        size=size,
        subject=subject,
        peer=peer,
        ratio=ratio,
        unit="ratio: standard errors apart",
        ours=ours,
        theirs=theirs,
        goal=f"ratio <= {MAX_ERRORS}",
        reached=ratio <= MAX_ERRORS,
        note=note,
    )


def means_apart(what: str, size: str, subject: str, peer: str, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    """Whether the means of independent runs of two sides agree."""
    error = math.sqrt(sum(statistics.variance(side) / len(side) for side in (ours, theirs)))
    note = f"{len(ours)} and {len(theirs)} runs"
    return apart(what, size, subject, peer, statistics.fmean(ours), statistics.fmean(theirs), error, note=note)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """All rows as a JSON list, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "w") as file:
        json.dump([asdict(row) for row in rows], file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def markdown(rows: Sequence[Row]) -> str:
    """Two tables, the checks apart; medians stand in parentheses behind the best."""
    checks = [row for row in rows if row.work.startswith(CHECK)]
    rest = [row for row in rows if not row.work.startswith(CHECK)]
    return "\n\n".join(_table(part) for part in (rest, checks) if part)


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| work | size | ours | theirs | unit | ratio | goal | threads | note |",
        "|---|---|--:|--:|---|--:|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.work,
            row.size,
            f"{row.subject}: {_with_median(row.ours, row.ours_median)}",
            f"{row.peer}: {_with_median(row.theirs, row.theirs_median)}",
            row.unit,
            _with_median(row.ratio, row.ratio_of_medians),
            row.goal and f"{row.goal}: {'yes' if row.reached else '**no**'}",
            " / ".join(dict.fromkeys(t for t in (row.ours_threads, row.theirs_threads) if t)),
            row.note,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_median(best: float, median: float | None) -> str:
    return _short(best) if median is None else f"{_short(best)} ({_short(median)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
