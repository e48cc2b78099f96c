"""What a report is made of: summaries of experiments and directories of runs, read as data and nothing else."""

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fivo.errors import InputError
from fivo.report.damage import refusing_damage
from fivo.report.joining import joined

RUN = "config.toml"
"""The file that makes a directory a run."""
FIELDS = ("bound", "validation", "kl", "ess", "gradient_norm")
MOST_NUMBERS = 120_000
FEWEST_POINTS, MOST_POINTS = 40, 400
SUMMARY = {"format", "name", "title", "place", "unit", "layout", "cells", "figure", "runs"}


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


@dataclass(frozen=True)
class Sources:
    """All that was found under some paths."""

    summaries: list[dict[str, Any]]
    runs: list[RunFiles]


def read_sources(paths: Sequence[str | os.PathLike[str]]) -> Sources:
    """Summaries and runs at or below the given paths; a path may also be a summary itself.

    Summaries of one experiment become one, in which later paths come before earlier ones.
    """
    summaries: list[dict[str, Any]] = []
    runs: dict[Path, RunFiles] = {}
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{str(path)!r:.200} does not exist; give directories of runs or sweeps.")
        files = [path] if path.is_file() else list(_files(path))
        found = {file.parent.resolve(): file.parent for file in files if file.name == RUN}
        others = [file for file in files if file.name != RUN]
        mine = [summary for file in others if (summary := _read_summary(file)) is not None]
        if not found and not mine:
            raise InputError(
                f"{str(path)!r:.200} holds no run and no summary of a sweep; make some with `fivo sweep` or "
                "`fivo train`."
            )
        summaries += mine
        for place, directory in found.items():
            if place not in runs:
                runs[place] = _read_run(directory, {run.label for run in runs.values()})
    with refusing_damage():
        return Sources(joined(summaries), list(runs.values()))


def _files(directory: Path) -> Iterable[Path]:
    """Runs and possible summaries; what is inside a run is not searched."""
    for root, folders, names in os.walk(directory):
        folders.sort()
        if RUN in names:
            folders.clear()
            yield Path(root, RUN)
        else:
            yield from (Path(root, name) for name in sorted(names) if name.endswith(".json"))


def _read_summary(path: Path) -> dict[str, Any] | None:
    value = _json(path)
    return value if value is not None and value.keys() >= SUMMARY and value["format"] == 1 else None


def _read_run(directory: Path, taken: set[str]) -> RunFiles:
    try:
        config = tomllib.loads((directory / RUN).read_text())
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{str(directory / RUN)!r} is not readable TOML; leave that run out.") from None
    label = directory.resolve().name
    count = 2
    while label in taken:
        label, count = f"{directory.resolve().name} ({count})", count + 1
    excerpt, steps = _excerpt(directory / "sample.npz")
    return RunFiles(
        label,
        directory,
        config,
        _metrics(directory / "metrics.jsonl"),
        _json(directory / "result.json"),
        _json(directory / "run.json") or {},
        excerpt,
        steps,
    )


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _metrics(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break  # the last line of a run that was killed
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def _excerpt(path: Path) -> tuple[dict[str, NDArray[np.uint8]] | None, int]:
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:  # a bad one is closed, too
            rolls = {name: np.asarray(file[name], np.uint8) for name in ("data", "sample")}
            return rolls, int(file["steps_per_quarter"])
    except Exception:  # whatever numpy, zipfile and zlib raise: a damaged excerpt is not worth the page
        return None, 1


def curves(runs: Sequence[RunFiles]) -> list[dict[str, Any]]:
    """The metrics of runs, thinned so that a page of many runs stays small; NaN is left out."""
    points = int(np.clip(MOST_NUMBERS // max(1, len(runs) * len(FIELDS)), FEWEST_POINTS, MOST_POINTS))
    result = []
    for run in runs:
        lines = {}
        for name in FIELDS:
            rows = [row for row in run.metrics if _is_number(row.get(name))]
            rows = rows[:: max(1, -(-len(rows) // points))]
            lines[name] = {"x": [row["step"] for row in rows], "y": [float(f"{row[name]:.5g}") for row in rows]}
        result.append({"label": run.label, "lines": lines})
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))
