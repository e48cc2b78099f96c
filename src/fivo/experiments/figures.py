"""The lines of an experiment's figure, from the metrics of its runs."""

from pathlib import Path
from typing import Any

from fivo.experiments.commands import train_command
from fivo.experiments.experiment import Experiment, PlannedRun
from fivo.experiments.selection import commit_of
from fivo.settings import flattened
from fivo.training import RunDirectory

MOST_POINTS = 400


def figure_of(experiment: Experiment, out: Path) -> list[dict[str, Any]] | None:
    """Panels of lines against the step; None for an experiment that is a table."""
    figure = experiment.document.figure
    if figure is None:
        return None
    panels: dict[str, list[dict[str, Any]]] = {}
    for run in experiment.runs:
        keys = dict(run.cell)
        title = f"{figure.panels}: {keys[figure.panels]}" if figure.panels else experiment.document.title
        lines = panels.setdefault(title, [])
        lines += [line for field in figure.fields if (line := _line(out, run, field, keys, experiment))]
    return [{"title": title, "y_label": figure.y_label, "lines": lines} for title, lines in panels.items()]


def _line(
    out: Path, run: PlannedRun, field: str, keys: dict[str, Any], experiment: Experiment
) -> dict[str, Any] | None:
    """What a run logged of a field, and how it was made; None where it has logged nothing yet."""
    figure = experiment.document.figure
    directory = RunDirectory(out / run.slug)
    rows = [row for row in directory.metrics() if field in row]
    if not rows:
        return None
    rows = rows[:: -(-len(rows) // MOST_POINTS) or 1]
    label = [str(keys[figure.lines])] if figure and figure.lines else []
    label += [field.replace("_", " ")] if not label or len(figure.fields if figure else ()) > 1 else []
    for key, word in (("learning_rate", "rate"), ("seed", "seed")):
        if len({other.flat[key] for other in experiment.runs}) > 1:
            label.append(f"{word} {run.flat[key]}")
    return {
        "label": ", ".join(label),
        "run": run.slug,
        "command": train_command(flattened(directory.config()), run.slug),
        "trained_with": commit_of(directory.path),
        "x": [row["step"] for row in rows],
        "y": [row[field] for row in rows],
    }
