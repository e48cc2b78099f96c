"""`fivo sweep`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def sweep(
    file: Path,
    *,
    only: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    workers: int | None = None,
    scheduler: str | None = None,
    out: Path | None = None,
    data_dir: Path | None = None,
) -> None:
    """Run an experiment: what is missing is trained, the best run of each cell is evaluated; the same command goes on.

    Parameters
    ----------
    file
        The experiment, a TOML file such as experiments/table1.toml.
    only
        KEY=VALUE ...: only the runs with these settings, say dataset=jsb particles=4 bound=fivo bound=iwae.
    workers
        Runs side by side on this machine, which share its cores out. [one for each core]
    scheduler
        The address of a Dask scheduler to run on instead, say tcp://host:8786.
    out
        Where the runs go; a path that all machines see. [runs/ and the experiment's directory]
    data_dir
        Where datasets are looked up first.
    """
    from fivo.cli.sweep_progress import SweepProgress
    from fivo.errors import InputError
    from fivo.experiments import check_data, chosen_runs, cluster_executor, local_executor, read_experiment
    from fivo.experiments import sweep as run_sweep
    from fivo.experiments.executors import default_workers
    from fivo.report.text import as_markdown

    if workers is not None and scheduler is not None:
        raise InputError("got both --workers and --scheduler where one was expected; leave one out.")
    if only == []:
        raise InputError("got --only without KEY=VALUE; give some, or leave it out to run the whole experiment.")
    experiment = read_experiment(file)
    runs = chosen_runs(experiment, only or ())
    out = Path("runs") / experiment.directory if out is None else out
    if scheduler is None:
        # On a cluster the data is where the workers are.
        check_data(runs, out, data_dir)
    workers = default_workers() if workers is None else workers
    place = local_executor(workers) if scheduler is None else cluster_executor(scheduler)
    with place as executor, SweepProgress(experiment.document.name) as progress:
        summary, failures = run_sweep(
            experiment,
            out,
            executor,
            runs=runs,
            capacity=workers if scheduler is None else None,
            data_dir=data_dir,
            report=progress.show,
        )
    if summary["cells"]:
        print(as_markdown(summary))
    print(f"everything is in {out}; for a page: fivo report {out} --out report.html")
    if failures:
        slug, sentence = next(iter(failures.items()))
        raise InputError(
            f"{len(failures)} of {len(runs)} runs failed, {slug} because {sentence.rstrip('.')}; see worker.log in the "
            "run's directory."
        )
