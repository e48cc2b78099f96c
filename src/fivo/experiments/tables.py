"""The cells of an experiment's table: what was published, what came out here, and which run it came from."""

import math
from pathlib import Path
from typing import Any

import msgspec

from fivo.experiments.checking import scores_of
from fivo.experiments.commands import train_command
from fivo.experiments.experiment import Document, Experiment, PlannedRun
from fivo.experiments.figures import figure_of
from fivo.experiments.selection import commit_of, result_of, score_of, selected
from fivo.runs import Score, Summary, average_of, write_record

OPTIMISTIC = "the maximum over ELBO, IWAE and FIVO, chosen on this split: optimistic, and the paper's own convention"


def summarise(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Gather everything that a report says about an experiment.

    Args:
        experiment: The experiment.
        out: The directory of its runs.

    Returns:
        A `fivo.runs.Summary` as plain values.
    """
    document = experiment.document
    evaluation = document.evaluation
    cells = []
    for cell in dict.fromkeys(run.cell for run in experiment.runs):
        mine = [run for run in experiment.runs if run.cell == cell]
        cells += [_cell(experiment, out, {**dict(cell), **score}, mine) for score in scores_of(evaluation)]
    if evaluation.relative_to:
        _subtract(cells, evaluation.relative_to)
    for cell in cells:
        known = cell["published"] is not None and cell["ours"] is not None
        cell["difference"] = cell["ours"] - cell["published"] if known else None
    return {
        "name": document.name,
        "title": document.title,
        "place": document.place,
        "unit": "measure" if evaluation.measures else evaluation.unit,
        "relative_to": evaluation.relative_to,
        "layout": msgspec.to_builtins(document.table) if document.table else None,
        "particles": evaluation.particles,
        "repeats": evaluation.repeats,
        "cells": cells,
        "figure": figure_of(experiment, out),
        "runs": [run.slug for run in experiment.runs if (out / run.slug / "config.toml").exists()],
    }


def write_summary(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Write the summary next to the runs, as NAME.json."""
    summary = summarise(experiment, out)
    write_record(out / f"{experiment.document.name}.json", msgspec.convert(summary, Summary))
    return summary


def _cell(experiment: Experiment, out: Path, keys: dict[str, Any], runs: list[PlannedRun]) -> dict[str, Any]:
    """The mean over seeds of the scores of the selected runs, and their spread."""
    evaluation, split = experiment.document.evaluation, keys["split"]
    chosen = []
    for seed in dict.fromkeys(run.settings.training.seed for run in runs):
        run = selected(out, [run for run in runs if run.settings.training.seed == seed], evaluation)
        score = run and score_of(out / run.slug, evaluation, split)
        if run and score:
            chosen.append(_evidence(out / run.slug, run, score, experiment.document, keys.get("measure")))
    return {
        "keys": keys,
        "published": _published(experiment, keys),
        **average_of(chosen),
        "note": OPTIMISTIC if chosen and not evaluation.measures and chosen[0]["config"]["bound"] != "fivo" else None,
        "runs_trained": sum(result_of(out / run.slug) is not None for run in runs),
        "runs_planned": len(runs),
        "selected": chosen,
    }


def _evidence(
    directory: Path, run: PlannedRun, score: Score, document: Document, measure: str | None
) -> dict[str, Any]:
    """A selected run, and everything needed to make its number again."""
    evaluation = document.evaluation
    unit = "nats_per_sequence" if measure else evaluation.unit
    validation = score_of(directory, evaluation, "valid")
    name = measure or score.reported.bound
    reported = score.bounds[name]
    error = reported.standard_error
    if error is not None and unit == "nats_per_sequence":
        # Both units are one sum of log p̂, divided by other constants.
        error *= score.mean_length
    return {
        "run": run.slug,
        "value": getattr(reported, unit),
        "standard_error": error,
        "reported": name,
        "bounds": {name: getattr(bound, unit) for name, bound in score.bounds.items()},
        "validation": None if validation is None else validation.reported.nats_per_step,
        "result": msgspec.to_builtins(result_of(directory)),
        "config": score.config,
        "commit": score.commit,
        "trained_with": commit_of(directory),
        "commands": [
            train_command(score.config, run.slug),
            f"fivo sweep {document.name}"
            if measure
            else f"fivo evaluate {run.slug} --split {score.split} --particles {score.particles} "
            f"--repeats {score.repeats} --seed {score.seed}"
            + (
                f" --resampling {score.resampling}"
                if score.resampling != run.flat.get("resampling", score.resampling)
                else ""
            ),
        ],
    }


def _published(experiment: Experiment, keys: dict[str, Any]) -> int | float | None:
    first = scores_of(experiment.document.evaluation)[0]
    for row in experiment.document.published:
        wanted = {**first, **row}
        if all(keys.get(key) == value for key, value in wanted.items() if key != "value"):
            return row["value"]
    return None


def _subtract(cells: list[dict[str, Any]], baseline: dict[str, Any]) -> None:
    """Make scores relative to those of the cell with the given keys; the errors add in squares."""
    bases = {}
    for cell in cells:
        if all(cell["keys"].get(key) == value for key, value in baseline.items()):
            bases[cell["keys"]["split"]] = (cell["ours"], cell["standard_error"])
    for cell in cells:
        base, error = bases.get(cell["keys"]["split"], (None, None))
        is_base = all(cell["keys"].get(key) == value for key, value in baseline.items())
        if cell["ours"] is None or base is None:
            cell["ours"], cell["standard_error"] = None, None
            continue
        cell["ours"] -= base
        if is_base:
            cell["standard_error"] = None
        elif error is not None and cell["standard_error"] is not None:
            cell["standard_error"] = math.hypot(cell["standard_error"], error)
