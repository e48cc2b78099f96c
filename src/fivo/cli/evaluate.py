"""`fivo evaluate`."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fivo.cli.machines import Machines

if TYPE_CHECKING:
    from fivo.runs import Score


def evaluate(
    run: Path,
    *,
    split: str = "test",
    particles: int = 128,
    bounds: str | None = None,
    bound: str | None = None,
    repeats: int = 3,
    seed: int = 0,
    batch_size: int | None = None,
    resampling: Literal["multinomial", "stratified", "systematic", "residual", "soft"] | None = None,
    relative_to: Path | None = None,
    sequences: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    model: str | None = None,
    data_dir: Path | None = None,
    machines: Annotated[Machines | None, Parameter(name="*")] = None,
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
        The bounds to compute, separated by commas. [elbo,iwae,fivo]
    bound
        An objective to compute instead: package.module:object, code that is run.
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
    model
        For a run of a model of your own: package.module:function, as in training.
    data_dir
        Where to look for datasets first.
    """
    import msgspec

    mesh = Machines().mesh() if machines is None else machines.mesh()

    from fivo._run import imported, open_run
    from fivo._terminal.output import say_json
    from fivo._terminal.progress import Bar
    from fivo.caching import compilation_cache
    from fivo.devices import leads
    from fivo.errors import InputError
    from fivo.inference import read_baseline
    from fivo.inference import relative_to as difference

    compilation_cache()
    if bound is not None and bounds is not None:
        raise InputError(f"--bound must come without --bounds, got {bound!r:.60} and {bounds!r:.60}.")
    chosen: dict[str, Any] = {} if bounds is None else {"bounds": [name.strip().lower() for name in bounds.split(",")]}
    if bound is not None:
        chosen["bound"] = imported(bound)
    own = None if model is None else imported(model)
    with Bar("evaluating") if leads() else nullcontext() as bar:

        def progress(name: str, done: int, total: int) -> None:
            if bar is not None:
                bar.label = f"{name} of {split}"
                bar.update(done, total=total)

        def scored(directory: Path, *, per_sequence: bool = False) -> "Score":
            return open_run(directory, model=own, data_dir=data_dir).evaluate(
                split=split,
                particles=particles,
                **chosen,
                repeats=repeats,
                seed=seed,
                batch_size=batch_size,
                resampling=resampling,
                per_sequence=per_sequence,
                progress=progress,
                mesh=mesh,
            )

        baseline = None if relative_to is None else read_baseline(relative_to, scored)
        result = scored(run, per_sequence=sequences)
        if baseline is not None:
            result = msgspec.structs.replace(result, relative=difference(result, baseline, str(relative_to)))
    if not leads():
        return
    if as_json:
        say_json(result)
    else:
        print_table(result)


def print_table(result: "Score") -> None:
    """Print the bounds as a table."""
    from msgspec import UNSET
    from rich.table import Table

    from fivo._terminal.output import console

    config = result.config
    many = f" (N = {config['particles']})" if "particles" in config else ""
    trained = f"trained with {_title(config['bound'])}{many}"
    table = Table(title=f"{_title(config['model'])} on {config['dataset']}, {trained}, step {result.steps}")
    raw = any(row.raw_nats_per_sequence is not UNSET for row in result.bounds.values())
    split = f"{result.split}, N = {result.particles}"
    headings = [split, "nats per step", "± s.e.", "nats per sequence", *(["of the raw data"] if raw else [])]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == split else "right")
    for name, row in result.bounds.items():
        error = "" if row.standard_error is None else f"{row.standard_error:.4f}"
        cells = [f"{row.nats_per_step:.4f}", error, f"{row.nats_per_sequence:.2f}"]
        table.add_row(_title(name), *cells, *([f"{row.raw_nats_per_sequence:.2f}"] if raw else []))
    screen = console()
    screen.print(table)
    reported = result.reported
    own = config["bound"] == reported.bound and reported.bound not in ("elbo", "iwae")
    rule = "its own bound" if own else "the maximum over bounds"
    screen.print(f"reported as in the paper ({rule}): {reported.nats_per_step:.4f} ({_title(reported.bound)})")
    relative = result.relative
    if relative is not UNSET:
        error = "" if relative.standard_error is None else f" ± {relative.standard_error:.1f}"
        screen.print(
            f"{relative.nats_per_sequence:+,.1f}{error} nats per sequence relative to {relative.to} "
            f"(trained with {_title(relative.trained_with)}, {_title(relative.bound)})",
            soft_wrap=True,
        )


def _title(name: str) -> str:
    """Names of ours in capitals, as the paper has them; those of users as they are."""
    return name.upper() if name in ("elbo", "iwae", "fivo", "sixo", "vrnn", "srnn", "dmm") else name
