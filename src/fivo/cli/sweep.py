"""`fivo sweep`."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo.experiments.status import Status

GOODBYE_SECONDS = 2.5
"""How long a sweep may take to end its jobs, wherever they run."""


def sweep(
    file: Path,
    *,
    only: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: str | None = None,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    out: Path | None = None,
    data_dir: Path | None = None,
) -> None:
    """Run an experiment: train the missing runs and evaluate the best run of each cell. Run it again to resume.

    Parameters
    ----------
    file
        The experiment: one of the paper by its name, such as table1, or a TOML file.
    only
        KEY=VALUE ...: only the runs with these settings, for example dataset=jsb particles=4 bound=fivo bound=iwae.
    workers
        Number of runs at a time on this machine, which share its cores [one per core]; with --slurm, number of Slurm
        jobs [one per run].
    scheduler
        The address of a Dask scheduler to run on instead, for example tcp://host:8786.
    slurm
        Start workers on Slurm, say partition=cpu,time=02:00:00,cpus=4,memory=8GB; other options of sbatch go in the
        same list, such as gres=gpu:1. Jobs that reach their time limit are submitted again.
    dry_run
        Print the job script of --slurm, and how many runs are missing, without submitting anything.
    out
        Where to put the runs; on a cluster, a path that all machines see. [runs/ and the experiment's directory]
    data_dir
        Where to look for datasets first.
    """
    from fivo._terminal.output import say, say_lines
    from fivo.cli import interrupts
    from fivo.cli.sweep_progress import SweepProgress
    from fivo.errors import InputError
    from fivo.experiments import check_data, chosen_runs, cluster_executor, local_executor, read_experiment
    from fivo.experiments import sweep as run_sweep
    from fivo.experiments.executors import default_workers
    from fivo.experiments.selection import is_trained
    from fivo.experiments.slurm import job_script, parse_slurm, slurm_executor
    from fivo.report.text import as_markdown

    if scheduler is not None and (workers is not None or slurm is not None):
        raise InputError("--scheduler must come without --workers and --slurm.")
    if dry_run and slurm is None:
        raise InputError("--dry-run must come with --slurm, whose job script it prints.")
    if only == []:
        raise InputError("--only needs at least one KEY=VALUE; leave it out to run the whole experiment.")
    experiment = read_experiment(file)
    runs = chosen_runs(experiment, only or ())
    out = Path("runs") / experiment.directory if out is None else out
    settings = None if slurm is None else parse_slurm(slurm)
    if settings is not None and dry_run:
        missing = sum(not is_trained(out / run.slug, run) for run in runs)
        say_lines(job_script(settings, out.absolute()))
        say(f"# {missing} of {len(runs)} runs are not trained yet; nothing was submitted")
        return
    here = scheduler is None and settings is None
    if here:
        # On a cluster the data is where the workers are.
        check_data(runs, out, data_dir)
    capacity = (default_workers() if workers is None else workers) if here else None
    if settings is not None:
        place = slurm_executor(settings, len(runs) if workers is None else workers, out.absolute())
    else:
        place = local_executor(capacity or 0) if scheduler is None else cluster_executor(scheduler)
    with (
        interrupts.patience(GOODBYE_SECONDS, signal.SIGINT, signal.SIGTERM),
        place as executor,
        SweepProgress(experiment.document.name) as progress,
    ):

        def report(status: "Status") -> None:
            interrupts.check()
            progress.show(status)

        summary, failures = run_sweep(
            experiment,
            out,
            executor,
            runs=runs,
            capacity=capacity,
            data_dir=data_dir,
            report=report,
        )
    if summary["cells"]:
        say_lines(as_markdown(summary))
        say("")
    say(f"everything is in {out}; for a page: fivo report {out} --out report.html")
    if failures:
        slug, sentence = next(iter(failures.items()))
        raise InputError(
            f"{len(failures)} of {len(runs)} runs failed, {slug} because {sentence.rstrip('.')}; see worker.log in the "
            "run's directory."
        )
