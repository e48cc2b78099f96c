"""Workers of a sweep's own on Slurm, started and taken down through dask-jobqueue."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from fivo.errors import InputError
from fivo.experiments.executors import client_executor
from fivo.extras import require

KNOWN = {"partition": "queue", "time": "walltime", "account": "account", "memory": "memory", "interface": "interface"}
"""Options that dask-jobqueue names differently; all others go to sbatch unchanged."""
LOST = "distributed.deploy.lost-worker-timeout"
"""Dask's setting: how long a worker must be gone until it counts as lost, and its job is submitted again."""


def parse_slurm(text: str) -> dict[str, Any]:
    """The settings of a job from the text of `--slurm`.

    Args:
        text: `KEY=VALUE` pairs separated by commas: partition, time, cpus, memory, account, interface (the network that
            the workers find the sweep by), and any other option of sbatch without its dashes, such as gres=gpu:1.

    Returns:
        Arguments of a `dask_jobqueue.SLURMCluster`.
    """
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    for key, equals, value in pairs:
        if not (equals and value and key.replace("-", "").isalnum()):
            raise InputError(
                f"--slurm must be KEY=VALUE pairs separated by commas, such as partition=cpu,time=02:00:00, got "
                f"{text!r:.90}."
            )
    given = {key: value for key, _, value in pairs}
    cpus = given.pop("cpus", "1")
    if not cpus.isdigit() or int(cpus) < 1:
        raise InputError(f"cpus of --slurm must be a positive integer, got {cpus!r:.60}.")
    settings: dict[str, Any] = {KNOWN[key]: value for key, value in given.items() if key in KNOWN}
    extra = [f"--{key}={value}" for key, value in given.items() if key not in KNOWN]
    return {"memory": "4GB", **settings, "cores": int(cpus), "job_extra_directives": extra}


def job_script(settings: dict[str, Any], out: Path) -> str:
    """The script that sbatch gets, with a placeholder where the sweep's address will be.

    Args:
        settings: What `parse_slurm` returned.
        out: The directory of the runs; the workers' logs go to its sub-directory `slurm`.
    """
    slurm = require("dask_jobqueue", "A sweep on Slurm")
    common = {key: value for key, value in settings.items() if key != "interface"}
    with tempfile.TemporaryDirectory() as logs:  # a job makes the directory of its logs when it is described
        worker = {**_worker(out), "log_directory": logs}
        job = slurm.slurm.SLURMJob(scheduler="tcp://ADDRESS:PORT", name="fivo-worker", **common, **worker)
        return job.job_script().replace(logs, str(out / "slurm"))


@contextlib.contextmanager
def slurm_executor(settings: dict[str, Any], jobs: int, out: Path) -> Iterator[Executor]:
    """Dask workers in Slurm jobs; each trains one run per CPU at a time. They are cancelled at the end.

    Args:
        settings: What `parse_slurm` returned.
        jobs: How many Slurm jobs to keep running; one that ends at its time limit is submitted again, and its runs
            continue from their checkpoints.
        out: The directory of the runs, which all machines of the cluster must see.
    """
    if jobs < 1:
        raise InputError(f"--workers must be a positive integer, got {jobs}.")
    slurm = require("dask_jobqueue", "A sweep on Slurm")
    _check_submission(job_script(settings, out))
    (out / "slurm").mkdir(parents=True, exist_ok=True)
    from dask import config
    from dask.utils import parse_timedelta

    # A run that needs many time limits has not failed.
    patience = {"distributed.scheduler.allowed-failures": 1_000}
    seconds, ended = parse_timedelta(config.get(LOST)), threading.Event()
    with config.set(patience), slurm.SLURMCluster(**settings, **_worker(out)) as cluster:
        keeper = threading.Thread(target=_keep, args=(cluster, jobs, seconds, ended), daemon=True, name="slurm jobs")
        keeper.start()
        try:
            with client_executor(cluster) as executor:
                yield executor
        finally:
            ended.set()
            keeper.join()


def _worker(out: Path) -> dict[str, Any]:
    return {
        "processes": 1,
        "nanny": False,
        "python": sys.executable,
        "job_name": "fivo-sweep",
        "log_directory": str(out / "slurm"),
        "local_directory": tempfile.gettempdir(),
    }


def _keep(cluster: Any, jobs: int, seconds: float, ended: threading.Event) -> None:
    """Submit the jobs, and every so many seconds those again that have ended, at their time limit say."""
    while not ended.is_set():
        cluster.scale(jobs=jobs)
        ended.wait(seconds)


def _check_submission(script: str) -> None:
    """Ask Slurm whether it would take the script, without submitting it."""
    if shutil.which("sbatch") is None:
        raise InputError(
            "`sbatch` must be on the PATH for --slurm; run the sweep on a machine that submits jobs, or start a Dask "
            "cluster and give its --scheduler."
        )
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        asked = subprocess.run(["sbatch", "--test-only", file.name], capture_output=True, text=True, check=False)
    if asked.returncode:
        said = " ".join((asked.stderr or asked.stdout).split())
        raise InputError(f"Slurm refuses the job ({said:.200}); check the options of --slurm.")
