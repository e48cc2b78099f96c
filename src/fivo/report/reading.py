"""What a report is made of: summaries of experiments and directories of runs, read as data and nothing else."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from fivo import runs
from fivo.errors import InputError
from fivo.report.damage import refusing_damage
from fivo.report.joining import joined

FIELDS = ("bound", "validation", "kl", "ess", "gradient_norm")
MOST_NUMBERS = 120_000
FEWEST_POINTS, MOST_POINTS = 40, 400
logger = logging.getLogger(__name__)

Value = TypeVar("Value")


@dataclass(frozen=True)
class RunFiles:
    """A run as its directory describes it; `label` is unique among the runs of a report."""

    label: str
    directory: Path
    config: dict[str, Any]
    metrics: list[dict[str, Any]]
    result: dict[str, Any] | None
    provenance: dict[str, Any]
    excerpt: dict[str, NDArray[np.uint8]] | None
    steps_per_quarter: int
    drawings: tuple[runs.Drawing, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a table of runs shows, by the names of their options."""
        sections = {name: part for name, part in self.config.items() if isinstance(part, dict)}
        flat = {key: value for part in sections.values() for key, value in part.items() if key != "kind"}
        kinds = {name: part["kind"] for name, part in sections.items() if "kind" in part}
        return flat | kinds


@dataclass(frozen=True)
class Sources:
    """All that was found under some paths.

    Args:
        summaries: Of experiments, as plain values.
        runs: The runs.
    """

    summaries: list[dict[str, Any]]
    runs: list[RunFiles]


def read_sources(paths: Sequence[str | os.PathLike[str]]) -> Sources:
    """Read the summaries and runs at or below some paths.

    Summaries of one experiment become one, in which later paths come before earlier ones. Damaged settings or summaries
    are refused; other files of a run that are damaged are left out, with a warning of `logging`.

    Args:
        paths: Directories of sweeps or runs, or summaries.

    Returns:
        What was found.
    """
    summaries: list[dict[str, Any]] = []
    found_runs: dict[Path, RunFiles] = {}
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{str(path)!r:.200} does not exist; give directories of runs or sweeps.")
        files = [path] if path.is_file() else list(_files(path))
        found = {file.parent.resolve(): file.parent for file in files if file.name == runs.CONFIG}
        others = [file for file in files if file.name != runs.CONFIG]
        mine = [summary for file in others if (summary := _read_summary(file)) is not None]
        if not found and not mine:
            raise InputError(
                f"{str(path)!r:.200} holds no run and no summary of a sweep; make some with `fivo sweep` or `fivo fit`."
            )
        summaries += mine
        for place, directory in found.items():
            if place not in found_runs:
                found_runs[place] = _read_run(directory, {run.label for run in found_runs.values()})
    with refusing_damage():
        return Sources(joined(summaries), list(found_runs.values()))


def _files(directory: Path) -> Iterable[Path]:
    """Runs and possible summaries; what is inside a run is not searched."""
    for root, folders, names in os.walk(directory):
        folders.sort()
        if runs.CONFIG in names:
            folders.clear()
            yield Path(root, runs.CONFIG)
        else:
            yield from (Path(root, name) for name in sorted(names) if name.endswith(".json"))


def _read_summary(path: Path) -> dict[str, Any] | None:
    try:
        summary = runs.read_summary(path)
    except runs.UnreadableError as problem:
        logger.warning("%s; it is left out.", str(problem).rstrip("."))
        return None
    return None if summary is None else msgspec.to_builtins(summary)


def _read_run(directory: Path, taken: set[str]) -> RunFiles:
    run = runs.RunDirectory(directory)
    config = run.settings()
    label = directory.resolve().name
    count = 2
    while label in taken:
        label, count = f"{directory.resolve().name} ({count})", count + 1
    result = _readable(directory / runs.Result.FILE, run.result)
    provenance = _readable(directory / runs.Provenance.FILE, run.provenance)
    excerpt = _readable(directory / runs.EXCERPT, lambda: runs.read_excerpt(directory / runs.EXCERPT))
    return RunFiles(
        label,
        directory,
        config,
        _readable(run.metrics_path, run.metrics) or [],
        None if result is None else msgspec.to_builtins(result),
        {} if provenance is None else msgspec.to_builtins(provenance),
        None if excerpt is None else {"data": excerpt.data, "sample": excerpt.sample},
        1 if excerpt is None else excerpt.steps_per_quarter,
        tuple(kept for kind in runs.DRAWINGS if (kept := _readable(directory / kind.FILE, lambda k=kind: run.read(k)))),
    )


def _readable(path: Path, read: Callable[[], Value]) -> Value | None:
    """The content of a file; a damaged one is left out of the page with a warning."""
    try:
        return read() if path.exists() else None
    except InputError as problem:
        logger.warning("%s", problem)
        return None


def curves(files: Sequence[RunFiles]) -> list[dict[str, Any]]:
    """The metrics of runs, thinned so that a page of many runs stays small; what is not finite is left out."""
    points = int(np.clip(MOST_NUMBERS // max(1, len(files) * len(FIELDS)), FEWEST_POINTS, MOST_POINTS))
    result = []
    for run in files:
        lines = {}
        for name in FIELDS:
            rows = [row for row in run.metrics if _is_number(row.get(name))]
            rows = rows[:: max(1, -(-len(rows) // points))]
            lines[name] = {"x": [row["step"] for row in rows], "y": [float(f"{row[name]:.5g}") for row in rows]}
        result.append({"label": run.label, "lines": lines})
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))
