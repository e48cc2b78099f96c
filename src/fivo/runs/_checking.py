"""A whole run, file by file: is everything what was written, and does it fit together?"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.runs._checkpoints import Progress
from fivo.runs._directory import CONFIG, RunDirectory
from fivo.runs._excerpt import EXCERPT, read_excerpt
from fivo.runs._forecasting import Backtest, Selection
from fivo.runs._metrics import read_lines
from fivo.runs._records import DRAWINGS, Diagnosis, Evaluations, Provenance, Result, TableRecord

TRANSIENT = {".lock", "job.json", "worker.log"}
"""Files that matter only while a process is at work."""
OF_TABLES = (TableRecord, Backtest, Selection, *DRAWINGS)
AGAIN = "run the same `fivo fit` command again, which makes it anew"


class FileStatus(msgspec.Struct, frozen=True):
    """What became of a file of a run.

    Args:
        file: Its path within the run's directory.
        status: "good", "bad", "missing", or "unchecked" for what no program reads, such as a plot.
        problem: What is wrong, in a sentence; None if nothing is.
    """

    file: str
    status: Literal["good", "bad", "missing", "unchecked"]
    problem: str | None = None


def check_run(path: str | os.PathLike) -> list[FileStatus]:
    """Verify a run's directory.

    Args:
        path: The directory of a run, finished or not.

    Returns:
        The status of every file, indispensable ones first. `InputError` if there is no run.
    """
    run = RunDirectory(path)
    if not run.exists() and not run.checkpoints.exist():
        raise InputError(f"{str(run.path)!r} is not a run directory (it has no {CONFIG}); train one with `fivo fit`.")
    found = list(_records(run))
    known = {status.file for status in found} | TRANSIENT
    files = (place.relative_to(run.path).as_posix() for place in sorted(run.path.rglob("*")) if place.is_file())
    return found + [FileStatus(name, "unchecked") for name in files if name not in known]


def _records(run: RunDirectory) -> Iterator[FileStatus]:
    checks: list[tuple[Path, Callable[[], Any], bool]] = [(run.config_path, run.settings, True)]
    if _status(run, *checks[0]).status == "good":
        # Without it, nothing can be told from the files of another run.
        result = _readable(run.result)
        progress = _readable(lambda: run.checkpoints.read(run.latest, run.id).progress)
        ended = (run.path / Result.FILE).exists()
        # A run that was killed just now may lack the best checkpoint of its latest step.
        kept = ended or (progress is not None and 0 < progress.best_step < progress.step)
        checks += [
            (run.path / Provenance.FILE, run.provenance, True),
            (run.metrics_path, lambda: _check_metrics(run, result), ended),
            (run.latest, lambda: run.checkpoints.read(run.latest, run.id), ended),
            (run.previous, lambda: run.checkpoints.read(run.previous, run.id), False),
            (run.best, lambda: _check_best(run, progress, kept), kept),
            (run.path / Result.FILE, lambda: _check_result(run, progress), False),
            (run.path / Evaluations.FILE, run.evaluations, False),
            (run.path / Diagnosis.FILE, lambda: run.read(Diagnosis), False),
            *((run.path / kind.FILE, lambda kind=kind: run.read(kind), False) for kind in OF_TABLES),
            (run.path / EXCERPT, lambda: read_excerpt(run.path / EXCERPT), False),
        ]
    for path, read, needed in checks:
        if needed or path.exists():
            yield _status(run, path, read, needed)


def _status(run: RunDirectory, path: Path, read: Callable[[], Any], needed: bool) -> FileStatus:
    name = path.relative_to(run.path).as_posix()
    if needed and not path.exists():
        remedy = AGAIN if path.parent == run.checkpoints.folder else "restore it from a copy"
        return FileStatus(name, "missing", f"{str(path)!r} is lost; {remedy}.")
    try:
        read()
    except DamagedError as problem:
        if path.parent != run.checkpoints.folder:
            return FileStatus(name, "bad", str(problem))
        remedy = "remove it: the run goes on from the latest" if path == run.previous else AGAIN
        return FileStatus(name, "bad", f"{str(problem).rpartition(';')[0]}; {remedy}.")
    except InputError as problem:
        return FileStatus(name, "bad", str(problem))
    return FileStatus(name, "good")


def _readable(read: Callable[[], Any]) -> Any:
    """What is to be compared with; what cannot be read is reported for its own file."""
    try:
        return read()
    except InputError:
        return None


def _check_metrics(run: RunDirectory, result: Result | None) -> None:
    lost = read_lines(run.metrics_path).lost(0 if result is None else result.steps)
    if lost is not None:
        raise DamagedError(
            f"{str(run.metrics_path)!r} {lost}; restore it from a copy, or run the same `fivo fit` command again, "
            "which goes on with what is left."
        )


def _check_best(run: RunDirectory, progress: Progress | None, kept: bool) -> None:
    best = run.checkpoints.read_best(run.id)[1]
    # A best step that the latest checkpoint has not reached yet is of the time before that was damaged.
    if progress is not None and best != progress.best and best.step <= progress.step and kept:
        raise DamagedError(
            f"{str(run.best)!r} is of step {best.step} where the run's best is step {progress.best_step}; {AGAIN}."
        )


def _check_result(run: RunDirectory, progress: Progress | None) -> None:
    result = run.result()
    if progress is not None and (result.steps, result.best_step) != (progress.step, progress.best_step):
        raise DamagedError(
            f"{str(run.path / Result.FILE)!r} says {result.steps} steps where the latest checkpoint has "
            f"{progress.step}; {AGAIN}."
        )
