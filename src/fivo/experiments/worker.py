"""One job of a sweep: `python -m fivo.experiments.worker JOB.json` trains a run, or scores a trained one."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from fivo.caching import compilation_cache
from fivo.errors import InputError

PATIENCE_SECONDS = 20.0
"""How long the last process of a run, whose own parent died, may take to leave."""


def main(path: str) -> None:
    """Do what a job's file says."""
    job = json.loads(Path(path).read_text())
    if job["cores"]:
        # Before JAX counts the cores and makes a thread for each.
        os.sched_setaffinity(0, job["cores"])
    threading.Thread(target=_leave_with, args=(job["parent"],), daemon=True).start()
    compilation_cache()
    try:
        _wait_for_lock(job["directory"])
        {"train": _train, "validate": _evaluate, "evaluate": _evaluate}[job["kind"]](job)
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _leave_with(parent: int) -> None:
    """No orphan keeps the lock of a run."""
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(3)


def _wait_for_lock(directory: str) -> None:
    from fivo.training import RunDirectory

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with RunDirectory(directory):
                return
        except InputError as error:
            if time.monotonic() > deadline:
                print(error, file=sys.stderr)
                sys.exit(1)  # no mistake: the sweep tries once more
            time.sleep(0.25)


def _train(job: dict[str, Any]) -> None:
    from fivo.evaluation.curves import Curves
    from fivo.training import build_dataset, make_config, train

    config = make_config(job["settings"])
    dataset = build_dataset(config, job["data_dir"])
    probe = Curves(config, dataset, **job["curves"]) if job["curves"] else None
    train(config, job["directory"], dataset, probe=probe)


def _evaluate(job: dict[str, Any]) -> None:
    from fivo.evaluation import evaluate, open_run
    from fivo.experiments.excerpts import write_excerpt
    from fivo.experiments.selection import scores_of
    from fivo.runs import Evaluations, Score
    from fivo.training.build import bounding_resampling
    from fivo.training.commit import code_commit

    run = open_run(job["directory"], data_dir=job["data_dir"])
    with run.directory:
        if job["kind"] == "evaluate":
            write_excerpt(run)
        options = {name: job[name] for name in ("particles", "repeats")}
        options["resampling"] = bounding_resampling(run.config)
        scores = scores_of(run.directory.path)
        for split in job["splits"]:
            score = evaluate(run, split=split, **options) | {"commit": code_commit()}
            scores[split] = msgspec.convert(score, Score)
        run.directory.write(Evaluations(scores))


if __name__ == "__main__":
    main(sys.argv[1])
