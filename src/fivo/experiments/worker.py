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
    from fivo._run import prepare_named
    from fivo.inference import Curves
    from fivo.training import Watchers, train

    plan = prepare_named(job["settings"], job["data_dir"])
    probe = Curves(plan.settings, plan.dataset, **job["curves"]) if job["curves"] else None
    train(plan, job["directory"], watchers=Watchers(probe=probe))


def _evaluate(job: dict[str, Any]) -> None:
    from fivo._run import imported
    from fivo.experiments.excerpts import write_excerpt
    from fivo.experiments.selection import scores_of
    from fivo.inference import bounding_options
    from fivo.runs import Evaluations
    from fivo.training import code_commit

    run = _opened(job)
    with run.directory:
        if job["kind"] == "evaluate":
            write_excerpt(run)
        options = {name: job[name] for name in ("particles", "repeats")} | bounding_options(run)
        if job["measures"]:
            options["bounds"] = {name: imported(measure) for name, measure in job["measures"].items()}
        scores = scores_of(run.directory.path)
        for split in job["splits"]:
            scores[split] = msgspec.structs.replace(run.evaluate(split=split, **options), commit=code_commit())
        run.directory.write(Evaluations(scores))


def _opened(job: dict[str, Any]) -> Any:
    """The run, with what the experiment names beside it: a run directory says nothing that is imported."""
    from fivo._run import imported, made_dataset, names_object, open_run

    model, dataset = job["settings"]["model"], job["settings"]["dataset"]
    return open_run(
        job["directory"],
        model=imported(model) if names_object(model) else None,
        dataset=made_dataset(dataset, job["data_dir"]) if names_object(dataset) else None,
        data_dir=job["data_dir"],
    )


if __name__ == "__main__":
    main(sys.argv[1])
