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
    """Bounds of a run's best model: the sum of log p-hat over a split by the sum of its lengths.

    Parameters
    ----------
    run
        The run's directory.
    split
        train, valid or test.
    particles
        N of every bound; the ELBO averages over N samples.
    bounds
        Which bounds, separated by commas.
    repeats
        Independent evaluations, for the standard error.
    seed
        Of the evaluations.
    batch_size
        Sequences scored at once; fewer take less memory, the estimates are the same. [as many as fit]
    resampling
        How FIVO draws ancestors. [as in training]
    relative_to
        A baseline to compare with in nats per sequence: a run's directory, or a file of what --json printed for it.
    sequences
        Also give the estimate of every sequence (with --json).
    as_json
        Print one JSON object instead of a table.
    data_dir
        Where datasets are looked up first.
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
    """The bounds for a person."""
    from rich.console import Console
    from rich.table import Table

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
    console = Console()
    console.print(table)
    reported = result["reported"]
    rule = "its own bound" if config["bound"] == reported["bound"] == "fivo" else "the maximum over bounds"
    console.print(f"reported as in the paper ({rule}): {reported['nats_per_step']:.4f} ({reported['bound'].upper()})")
    relative = result.get("relative")
    if relative is not None:
        error = "" if relative["standard_error"] is None else f" ± {relative['standard_error']:.1f}"
        console.print(
            f"{relative['nats_per_sequence']:+,.1f}{error} nats per sequence relative to {relative['to']} "
            f"(trained with {relative['trained_with'].upper()}, {relative['bound'].upper()})",
            soft_wrap=True,
        )
