"""A finished run with every file that a run can have."""

import shutil
from pathlib import Path

import msgspec
import numpy as np

from fivo import open_run
from fivo.data import Dataset
from fivo.runs import Evaluations, Excerpt, write_excerpt
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
    score = msgspec.structs.replace(run.evaluate(particles=2, repeats=2), commit="c0ffee")
    run.directory.write(Evaluations({"test": score}))
    run.directory.write(run.diagnose(particles=(2,), num_sequences=1, repeats=2))
    roll = np.asarray(music.splits["test"][0], np.uint8)
    write_excerpt(directory / "sample.npz", Excerpt(roll, roll[::-1], 2))


def copied(directory: Path, to: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(directory, to))
