"""Tiny sweeps in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import tomli_w

from fivo.experiments import read_experiment
from fivo.experiments.experiment import Experiment
from fivo.training import RunDirectory
from tests.music import command_line, environment


def write_experiment(path: Path, music_file: Path, seeds: int = 2, **changes: object) -> Experiment:
    """Runs of one program: three learning rates of some seeds, each seed with a run to select."""
    content = {
        "name": "tiny",
        "title": "Tiny",
        "place": "Table 0",
        "settings": {
            "dataset": str(music_file),
            "hidden": 4,
            "particles": 2,
            "batch_size": 2,
            "steps": 240,
            "validate_every": 40,
            "log_every": 10,
            "patience": 0,
        },
        "grid": {"bound": ["fivo"], "learning_rate": [0.02, 0.01, 0.005], "seed": list(range(seeds))},
        "evaluation": {"splits": ["test"], "particles": 2, "repeats": 2},
    }
    path.write_text(tomli_w.dumps({**content, **changes}))
    return read_experiment(path)


def start_sweep(file: Path, out: Path, cache: Path, *options: object) -> subprocess.Popen:
    """`fivo sweep`, left running."""
    return subprocess.Popen(
        command_line("sweep", file, "--out", out, *options),
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> str:
    """Wait for a command that must succeed; what it printed."""
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output


ALONE = """
import os, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import msgspec
from fivo import open_run
from fivo._run import prepare
from fivo.experiments import read_experiment
from fivo.training import train
file, out = sys.argv[1:]
scores = {}
for run in read_experiment(file).runs:
    train(prepare(settings=run.flat), f"{out}/{run.slug}")
    trained = open_run(f"{out}/{run.slug}")
    splits = ("valid", "test")
    scores[run.slug] = {s: trained.evaluate(split=s, particles=2, repeats=2).bounds for s in splits}
print(msgspec.json.encode(scores).decode())
"""


def train_alone(file: Path, out: Path, cache: Path) -> dict[str, dict]:
    """The runs of an experiment one after the other in a single process, never disturbed; the scores of each."""
    command = [sys.executable, "-c", ALONE, str(file), str(out)]
    return json.loads(subprocess.run(command, env=environment(cache), capture_output=True, check=True).stdout)


def trained(out: Path) -> set[str]:
    """Runs that have ended."""
    return {path.parent.name for path in out.glob("*/result.json")}


def logged_steps(out: Path) -> int:
    """How far all runs have come together."""
    return sum(path.read_text().count("\n") for path in out.glob("*/metrics.jsonl"))


def scores(directory: Path) -> dict:
    """The scores of a run, by split."""
    return msgspec.to_builtins(RunDirectory(directory).evaluations().splits)
