"""Sweeps that never were: the files that runs leave, written without training anything."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fivo.experiments.experiment import Experiment, PlannedRun, make_experiment
from fivo.experiments.selection import scores_of
from fivo.runs import Evaluations, Excerpt, Provenance, Result, Score, write_excerpt
from fivo.runs._metrics import encode_line
from fivo.training import RunDirectory

ODD = '<script>alert("1")</script>|_$&../'
CONTENT: dict[str, Any] = {
    "name": "made",
    "title": f"Bounds of {ODD}",
    "place": "Table 9",
    "settings": {"steps": 100, "particles": 4},
    "grid": [{"dataset": ["jsb", ODD], "bound": ["elbo", "fivo"], "learning_rate": [1e-3, 1e-4]}],
    "evaluation": {"splits": ["test"], "particles": 8, "repeats": 2},
    "table": {"rows": ["bound"], "columns": ["dataset"]},
    "published": [
        {"dataset": "jsb", "bound": "elbo", "value": -8.6},
        {"dataset": "jsb", "bound": "fivo", "value": -6.9},
    ],
}


def made_experiment(**changes: Any) -> Experiment:
    return make_experiment({**CONTENT, **changes})


def write_training(out: Path, run: PlannedRun, validation: float, fields: tuple[str, ...] = ()) -> Path:
    """A run that ended, whose best step was its 80th."""
    directory = RunDirectory(out / run.slug)
    directory.record(run.settings, 0)
    directory.write(Provenance("data", "c0ffee", "3.11", {}))
    directory.write(Result(100, 80, validation, False, 12.5, 1))
    names = ("bound", "validation", "kl", "ess", *fields)
    rows = [
        {"step": step, **{name: validation - 1 / (1 + step) + place for place, name in enumerate(names)}}
        | {"gradient_norm": 1 + 10 / step}
        for step in range(10, 101, 10)
    ]
    write_metrics(directory.path, rows)
    return directory.path


def write_metrics(directory: Path, rows: list[dict[str, Any]]) -> None:
    (directory / "metrics.jsonl").write_bytes(b"".join(map(encode_line, rows)))


def write_evaluation(
    directory: Path, run: PlannedRun, values: dict[str, float], split: str = "test", **changes: Any
) -> None:
    """The scores of a run, as the worker writes them."""
    bounds = {
        name: {"nats_per_step": value, "standard_error": 0.003, "nats_per_sequence": value * 60}
        for name, value in values.items()
    }
    reported = (
        "fivo" if run.flat["bound"] == "fivo" and "fivo" in values else max(values, key=lambda name: values[name])
    )
    score = {
        "split": split,
        "particles": 8,
        "repeats": 2,
        "seed": 0,
        "steps": 80,
        "bounds": bounds,
        "reported": {"bound": reported, "nats_per_step": values[reported]},
        "mean_length": 60.0,
        "dataset_fingerprint": "data",
        "resampling": run.flat.get("resampling", "multinomial"),
        "config": run.flat,
        "commit": "c0ffee",
    }
    scores = {**scores_of(directory), split: msgspec.convert({**score, **changes}, Score)}
    RunDirectory(directory).write(Evaluations(scores))


def write_sweep(out: Path, experiment: Experiment) -> None:
    """Every run trained and validated (the smaller rate a little better), the better ones evaluated, music in each."""
    rng = np.random.default_rng(0)
    for run in experiment.runs:
        better = run.flat["learning_rate"] < 5e-4
        directory = write_training(out, run, -7.0 + 0.1 * better)
        write_evaluation(directory, run, {"fivo": -7.0 + 0.1 * better}, "valid")
        if better:
            write_evaluation(directory, run, {"elbo": -8.5, "iwae": -8.2, "fivo": -7.0})
            rolls = {name: (rng.random((16, 88)) < 0.05).astype(np.uint8) for name in ("data", "sample")}
            write_excerpt(directory / "sample.npz", Excerpt(**rolls, steps_per_quarter=1))
