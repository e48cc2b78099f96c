"""Which arrangement finishes a sweep sooner: one-thread runs side by side, or one run at a time on all cores.

`python benchmarks/arrangement.py [--hidden 32 --particles 4 --steps 2000 --runs 2 --rounds 3]` trains the same runs on
bach both ways, in turn, and prints the seconds of each; every process finds its programs compiled.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from fivo.experiments import local_executor, sweep
from fivo.experiments.executors import available_cores
from fivo.experiments.experiment import Experiment, make_experiment


def experiment_of(arguments: argparse.Namespace, steps: int) -> Experiment:
    """As many runs as asked for, which differ in their seeds alone."""
    settings = {
        "dataset": "bach",
        "hidden": arguments.hidden,
        "particles": arguments.particles,
        "steps": steps,
        "validate_every": max(1, steps),
        "patience": 0,
    }
    return make_experiment(
        {
            "name": "arrangement",
            "title": "Arrangement of runs on cores",
            "place": "-",
            "settings": settings,
            "grid": {"bound": ["fivo"], "seed": list(range(arguments.runs))},
            "evaluation": {"splits": []},
        }
    )


def seconds_of(experiment: Experiment, workers: int) -> float:
    """How long a sweep takes from its start to its end."""
    with tempfile.TemporaryDirectory() as out, local_executor(workers) as executor:
        started = time.monotonic()
        finished = sweep(experiment, Path(out), executor, capacity=workers)
        seconds = time.monotonic() - started
    if finished.failures:
        raise SystemExit(f"a run failed: {finished.failures}")
    return seconds


def main() -> None:
    """Measure both arrangements in turn and print them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("hidden", 32), ("particles", 4), ("steps", 2000), ("runs", 2), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    cores = len(available_cores())
    arrangements = {"side by side, one core each": cores, "one at a time on all cores": 1}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = cache
        for workers in arrangements.values():
            seconds_of(experiment_of(arguments, 2), workers)
        experiment = experiment_of(arguments, arguments.steps)
        measured: dict[str, list[float]] = {name: [] for name in arrangements}
        for _ in range(arguments.rounds):
            for name, workers in arrangements.items():
                measured[name].append(round(seconds_of(experiment, workers), 2))
    medians = {name: statistics.median(values) for name, values in measured.items()}
    print(json.dumps({"settings": vars(arguments), "cores": cores, "seconds": measured, "median": medians}, indent=2))


if __name__ == "__main__":
    main()
