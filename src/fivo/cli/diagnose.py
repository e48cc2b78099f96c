"""`fivo diagnose`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo.runs import Diagnosis


def diagnose(
    run: Path,
    *,
    particles: str = "4,16,64,256",
    split: str = "test",
    sequences: int = 16,
    repeats: int = 8,
    lineage: str | None = None,
    lineage_particles: int = 12,
    seed: int = 0,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    model: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Show how tight a run's bound is, and what limits it: the proposal, the number of particles, or the model.

    Parameters
    ----------
    run
        The run's directory.
    particles
        Numbers of particles to compare, separated by commas; the run's own number is added.
    split
        train, valid or test.
    sequences
        Number of sequences to use, evenly spread over the split.
    repeats
        Independent filters per sequence, for variances and standard errors.
    lineage
        The sequence whose particles are drawn: SPLIT:INDEX; by default the first of the split.
    lineage_particles
        Number of particles to draw.
    seed
        Random seed.
    out
        Where to put diagnosis.json, diagnosis.svg and lineage.svg, both also as .png. [RUN/diagnosis]
    as_json
        Print one JSON object instead of a table.
    model
        For a run of a model of your own: package.module:function, as in training.
    data_dir
        Where to look for datasets first.
    """
    from fivo._run import imported, open_run
    from fivo._terminal.output import say_json
    from fivo._terminal.progress import Bar
    from fivo.caching import compilation_cache
    from fivo.extras import require
    from fivo.inference import trace_lineage
    from fivo.report import plot_diagnosis, plot_lineage, write_figure
    from fivo.runs import write_record

    require("matplotlib", "The plots of a diagnosis")  # before anything is computed
    ladder = _numbers(particles)
    lineage = f"{split}:0" if lineage is None else lineage
    chosen, index = _sequence(lineage)
    compilation_cache()
    trained = open_run(run, model=None if model is None else imported(model), data_dir=data_dir)
    with Bar("diagnosing") as bar:
        result = trained.diagnose(
            particles=ladder,
            split=split,
            num_sequences=sequences,
            repeats=repeats,
            seed=seed,
            progress=lambda done, total: bar.update(done, total=total),
        )
    traced = trace_lineage(trained, chosen, index, num_particles=lineage_particles, seed=seed)
    folder = run / "diagnosis" if out is None else out
    write_record(folder / "diagnosis.json", result, run=trained.directory.id)
    figures = {
        "diagnosis": plot_diagnosis(result),
        "lineage": plot_lineage(*traced, title=f"Particles of {lineage}, N = {lineage_particles}"),
    }
    for name, figure in figures.items():
        for suffix in (".svg", ".png"):
            write_figure(folder / f"{name}{suffix}", figure)
    if as_json:
        say_json(result)
    else:
        _print(result, folder)


def _numbers(particles: str) -> list[int]:
    from fivo.errors import InputError

    try:
        return [int(part) for part in particles.split(",")]
    except ValueError:
        raise InputError(f"--particles must be numbers separated by commas, got {particles!r}.") from None


def _sequence(lineage: str) -> tuple[str, int]:
    from fivo.errors import InputError

    split, _, index = lineage.partition(":")
    if not index.isdigit():
        raise InputError(f"--lineage must be SPLIT:INDEX, such as test:3, got {lineage!r}.")
    return split, int(index)


def _print(result: "Diagnosis", folder: Path) -> None:
    from rich.table import Table

    from fivo._terminal.output import console

    config = result.config
    # Two tables, so that no number is cut on a terminal of eighty columns.
    title = f"{config['model'].upper()} on {config['dataset']}, {result.split}, nats per step"
    tightness = Table("N", "bound", "rel. var. of p̂", "½ var. of p̂", "½ var. of log p̂", title=title)
    filtering = Table("N", "sandwich", "ESS/N", "resampled", "KL(q‖p)")
    for row in result.rows:
        own = " (own)" if row.particles == result.own_particles else ""
        particles = f"{row.particles}{own}"
        tightness.add_row(
            particles,
            f"{row.bound:.3f} ± {row.standard_error:.3f}",
            f"{row.relative_variance:.3g}",
            f"{row.half_variance:.3f}",
            f"{row.half_log_variance:.3f}",
        )
        filtering.add_row(
            particles,
            f"{row.sandwich.gap:.3f} ± {row.sandwich.standard_error:.3f}",
            f"{row.ess:.2f}",
            f"{row.resampled:.2f}",
            f"{row.kl:.3f}",
        )
    screen = console()
    screen.print(tightness)
    screen.print(filtering)
    for sentence in result.verdict.sentences:
        screen.print(sentence)
    screen.print(f"wrote diagnosis.json, diagnosis.svg and lineage.svg (both also as .png) to {folder}", soft_wrap=True)
