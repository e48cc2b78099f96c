"""`fivo evaluate`."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter


def evaluate(
    run: Path,
    *,
    split: str = "test",
    particles: int = 128,
    bounds: str = "elbo,iwae,fivo",
    repeats: int = 3,
    seed: int = 0,
    batch_size: int | None = None,
    resampling: Literal["multinomial", "stratified", "systematic", "residual", "soft"] | None = None,
    relative_to: Path | None = None,
    sequences: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    data_dir: Path | None = None,
) -> None:
    """Compute bounds of a run's best model: the sum of log p-hat over a split, divided by the sum of its lengths.

    Parameters
    ----------
    run
        The run's directory.
    split
        train, valid or test.
    particles
        Number of particles of every bound; the ELBO averages over as many samples.
    bounds
        The bounds to compute, separated by commas.
    repeats
        Independent evaluations, for the standard error.
    seed
        Random seed.
    batch_size
        Sequences evaluated at once; fewer take less memory and give the same estimates. [as many as fit]
    resampling
        Resampling scheme of FIVO. [as in training]
    relative_to
        A baseline to compare with, in nats per sequence: the directory of a run, or a file with its --json output.
    sequences
        Also print the estimate for every sequence (with --json).
    as_json
        Print one JSON object instead of a table.
    data_dir
        Where to look for datasets first.
    """
    from fivo.caching import compilation_cache
    from fivo.cli.progress import Bar
    from fivo.evaluation import evaluate as evaluate_run
    from fivo.evaluation import open_run, read_baseline
    from fivo.evaluation import relative_to as difference

    compilation_cache()
    names = [name.strip().lower() for name in bounds.split(",")]
    with Bar("evaluating") as bar:

        def progress(name: str, done: int, total: int) -> None:
            bar.label = f"{name} of {split}"
            bar.update(done, total=total)

        def scored(directory: Path, *, per_sequence: bool = False) -> dict[str, Any]:
            return evaluate_run(
                open_run(directory, data_dir=data_dir),
                split=split,
                particles=particles,
                bounds=names,
                repeats=repeats,
                seed=seed,
                batch_size=batch_size,
                resampling=resampling,
                per_sequence=per_sequence,
                progress=progress,
            )

        baseline = None if relative_to is None else read_baseline(relative_to, scored)
        result = scored(run, per_sequence=sequences)
        if baseline is not None:
            result["relative"] = {"to": str(relative_to), **difference(result, baseline)}
    if as_json:
        print(json.dumps(result, allow_nan=False))
    else:
        print_table(result)


def print_table(result: dict[str, Any]) -> None:
    """Print the bounds as a table."""
    from rich.table import Table

    from fivo.cli.output import console

    config = result["config"]
    trained = f"trained with {config['bound'].upper()} (N = {config['particles']})"
    table = Table(title=f"{config['model'].upper()} on {config['dataset']}, {trained}, step {result['steps']}")
    raw = any("raw_nats_per_sequence" in row for row in result["bounds"].values())
    split = f"{result['split']}, N = {result['particles']}"
    headings = [split, "nats per step", "± s.e.", "nats per sequence", *(["of the raw data"] if raw else [])]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == split else "right")
    for name, row in result["bounds"].items():
        error = "" if row["standard_error"] is None else f"{row['standard_error']:.4f}"
        cells = [f"{row['nats_per_step']:.4f}", error, f"{row['nats_per_sequence']:.2f}"]
        table.add_row(name.upper(), *cells, *([f"{row['raw_nats_per_sequence']:.2f}"] if raw else []))
    screen = console()
    screen.print(table)
    reported = result["reported"]
    rule = "its own bound" if config["bound"] == reported["bound"] == "fivo" else "the maximum over bounds"
    screen.print(f"reported as in the paper ({rule}): {reported['nats_per_step']:.4f} ({reported['bound'].upper()})")
    relative = result.get("relative")
    if relative is not None:
        error = "" if relative["standard_error"] is None else f" ± {relative['standard_error']:.1f}"
        screen.print(
            f"{relative['nats_per_sequence']:+,.1f}{error} nats per sequence relative to {relative['to']} "
            f"(trained with {relative['trained_with'].upper()}, {relative['bound'].upper()})",
            soft_wrap=True,
        )
