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
        Number of runs at a time on this machine, which share its cores. [one per core]
    scheduler
        The address of a Dask scheduler to run on instead, for example tcp://host:8786.
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
    from fivo.report.text import as_markdown

    if workers is not None and scheduler is not None:
        raise InputError("--workers and --scheduler cannot be given together; leave one out.")
    if only == []:
        raise InputError("--only needs at least one KEY=VALUE; leave it out to run the whole experiment.")
    experiment = read_experiment(file)
    runs = chosen_runs(experiment, only or ())
    out = Path("runs") / experiment.directory if out is None else out
    if scheduler is None:
        # On a cluster the data is where the workers are.
        check_data(runs, out, data_dir)
    workers = default_workers() if workers is None else workers
    place = local_executor(workers) if scheduler is None else cluster_executor(scheduler)
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
            capacity=workers if scheduler is None else None,
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
