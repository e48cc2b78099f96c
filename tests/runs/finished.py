"""A finished run with every file that a run can have."""

import shutil
from pathlib import Path

import msgspec
import numpy as np

from fivo.data import Dataset
from fivo.evaluation import diagnose, evaluate, open_run
from fivo.runs import Diagnosis, Evaluations, Excerpt, Score, write_excerpt
from fivo.training import RunDirectory

RECORDS = [
    "config.toml",
    "run.json",
    "metrics.jsonl",
    "checkpoints/latest.safetensors",
    "checkpoints/latest-previous.safetensors",
    "checkpoints/best.safetensors",
    "result.json",
    "evaluation.json",
    "diagnosis/diagnosis.json",
    "sample.npz",
]


def complete(directory: Path, music: Dataset) -> None:
    """Add scores, a diagnosis and an excerpt to a trained run."""
    run = open_run(directory, dataset=music)
    score = msgspec.convert(evaluate(run, particles=2, repeats=2) | {"commit": "c0ffee"}, Score)
    run.directory.write(Evaluations({"test": score}))
    found = diagnose(run, particles=(2,), num_sequences=1, repeats=2)
    run.directory.write(msgspec.convert(found, Diagnosis))
    roll = np.asarray(music.splits["test"][0], np.uint8)
    write_excerpt(directory / "sample.npz", Excerpt(roll, roll[::-1], 2))


def copied(directory: Path, to: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(directory, to))
