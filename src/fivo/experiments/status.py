"""The progress of a sweep, read from the files that its runs write."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fivo.experiments.experiment import PlannedRun
from fivo.runs import Row, last_row


class Running(NamedTuple):
    """A job in a process: `row` is the last line of its metrics."""

    kind: str
    slug: str
    steps: int
    row: Row


class Status(NamedTuple):
    """Counts of runs, the jobs in processes, and an upper estimate of the seconds left (runs may stop early)."""

    trained: int
    failed: int
    total: int
    running: list[Running]
    seconds_left: float | None


def status_of(
    out: Path,
    runs: Sequence[PlannedRun],
    flying: Sequence[tuple[str, PlannedRun]],
    token: str,
    trained: Collection[str],
    failed: Collection[str],
) -> Status:
    """The status of a sweep; a job is running once the machine that runs it has written its file."""
    running = []
    for kind, run in flying:
        if _job(out / run.slug) == (token, kind):
            row = last_row(out / run.slug / "metrics.jsonl") or {}
            running.append(Running(kind, run.slug, run.settings.training.steps, row))
    ended = [run for run in runs if run.slug in trained or run.slug in failed]
    open_runs = [run for run in runs if run.slug not in trained and run.slug not in failed]
    left = _seconds_left(out, open_runs, ended, sum(job.kind == "train" for job in running))
    return Status(sum(run.slug in trained for run in runs), len(failed), len(runs), running, left)


def _job(directory: Path) -> tuple[Any, Any] | None:
    """Token and kind of the last job that a machine has begun with a run."""
    try:
        job = json.loads((directory / "job.json").read_bytes())
        return job["token"], job["kind"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def _seconds_left(
    out: Path, open_runs: Sequence[PlannedRun], ended: Sequence[PlannedRun], parallel: int
) -> float | None:
    """Steps left, each as long as in runs of the same shape so far; of other shapes where none has begun.

    No sooner than the longest run; unknown once all are trained, and only evaluations are left.
    """
    pace: dict[Any, list[float]] = {}
    done = {}
    for run in (*ended, *open_runs):
        row = last_row(out / run.slug / "metrics.jsonl") or {}
        done[run.slug] = row.get("step", 0)
        if row.get("step") and row.get("seconds"):
            pace.setdefault(run.cell, []).append(row["seconds"] / row["step"])
    if not pace or not parallel or not open_runs:
        return None
    means = {cell: sum(values) / len(values) for cell, values in pace.items()}
    usual = sum(means.values()) / len(means)
    seconds = [max(run.settings.training.steps - done[run.slug], 0) * means.get(run.cell, usual) for run in open_runs]
    return max(sum(seconds) / parallel, *seconds)
