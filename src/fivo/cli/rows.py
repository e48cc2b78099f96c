"""Commands on tables: `fivo score`, `filter`, `smooth`, `impute`, `forecast` and `anomaly`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.runs import Drawing

SHOWN = 10
"""Series that are listed on the screen."""

RunFolder = Annotated[Path, Parameter(help="The run's directory.")]
TableFile = Annotated[Path, Parameter(help="A table with the columns that the run was trained on.")]
Out = Annotated[Path, Parameter(help="Where to put the rows: a .csv, .parquet or .arrow file.")]
Plot = Annotated[Path, Parameter(help="Where to put a plot: a .png, .svg or .pdf file.")]
Quantiles = Annotated[str, Parameter(help="Quantiles to give, separated by commas.")]
Particles = Annotated[int, Parameter(help="Number of particles of the filter; exact models need none.")]
Seed = Annotated[int, Parameter(help="Random seed.")]
Devices = Annotated[int | None, Parameter(help="Share the series out over this many devices; changes no number. [1]")]
AsJson = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print one JSON object per series instead of a table.")
]


def score(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out | None = None,
    particles: Particles = 200,
    repeats: int = 3,
    seed: Seed = 0,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Compute log p(row | rows before it) for every row of a table, and totals for every series.

    Parameters
    ----------
    repeats
        Independent filters, for standard errors.
    """
    with _opened(run, out) as trained:
        from fivo._run import score

        found = score(trained, table, repeats=repeats, num_particles=particles, key=_key(seed), mesh=_mesh(devices))
        _write(found, out, as_json=as_json)
        _show(found.to_frame("series"), as_json, "nats in the table's own units")


def filter(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
    plot: Plot | None = None,
    quantiles: Quantiles = "0.1,0.5,0.9",
    particles: Particles = 200,
    seed: Seed = 0,
    devices: Devices = None,
) -> None:
    """Give the latent state after every row, and what was expected of the row before it was seen."""
    with _opened(run, out, plot) as trained:
        from fivo._run import filtered
        from fivo.runs import LatentStates

        found = filtered(
            trained, table, quantiles=levels_of(quantiles), num_particles=particles, key=_key(seed), mesh=_mesh(devices)
        )
        _write(found, out, plot)
        _keep(trained, LatentStates, table, found, given="filtered")


def smooth(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
    plot: Plot | None = None,
    quantiles: Quantiles = "0.1,0.5,0.9",
    particles: Particles = 200,
    seed: Seed = 0,
) -> None:
    """Give the latent state at every row given all rows of its series."""
    with _opened(run, out, plot) as trained:
        from fivo._run import smoothed
        from fivo.runs import LatentStates

        found = smoothed(trained, table, quantiles=levels_of(quantiles), num_particles=particles, key=_key(seed))
        _write(found, out, plot)
        _keep(trained, LatentStates, table, found, given="smoothed")


def impute(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
    plot: Plot | None = None,
    quantiles: Quantiles = "0.1,0.9",
    samples: int = 100,
    particles: Particles = 200,
    seed: Seed = 0,
) -> None:
    """Fill the missing cells of a table, given all rows of their series; observed cells stay as they are.

    Parameters
    ----------
    samples
        Draws of every missing cell.
    """
    with _opened(run, out, plot) as trained:
        from fivo._run import impute
        from fivo.runs import FilledGaps

        levels = levels_of(quantiles)
        found = impute(trained, table, quantiles=levels, num_samples=samples, num_particles=particles, key=_key(seed))
        _write(found, out, plot)
        _keep(trained, FilledGaps, table, found)


def forecast(
    run: RunFolder,
    table: TableFile,
    *,
    horizon: int,
    out: Out,
    plot: Plot | None = None,
    quantiles: Quantiles = "0.1,0.5,0.9",
    inputs_from: Path | None = None,
    samples: int = 200,
    particles: Particles = 200,
    seed: Seed = 0,
    devices: Devices = None,
) -> None:
    """Forecast the rows that follow every series of a table.

    Parameters
    ----------
    horizon
        Number of rows to forecast.
    inputs_from
        A table with the inputs of the rows to come, for runs with inputs.
    samples
        Draws of every series.
    """
    with _opened(run, out, plot) as trained:
        from fivo._run import forecast
        from fivo.runs import Forecasts

        found = forecast(
            trained,
            table,
            horizon,
            inputs=inputs_from,
            quantiles=levels_of(quantiles),
            num_samples=samples,
            num_particles=particles,
            key=_key(seed),
            mesh=_mesh(devices),
        )
        _write(found, out, plot)
        _keep(trained, Forecasts, table, found)


def anomaly(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out | None = None,
    plot: Plot | None = None,
    rate: float = 0.01,
    particles: Particles = 200,
    seed: Seed = 0,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Sound an alarm for rows and series that are stranger than ordinary ones, at a false-alarm rate that is met.

    p-values are ranks among the run's held-out data: its split `calibrate` if it has one, else `test`.

    Parameters
    ----------
    rate
        The false-alarm rate, for rows and for series.
    """
    with _opened(run, out, plot) as trained:
        from fivo._run import anomaly
        from fivo.runs import Alarms

        found = anomaly(trained, table, rate=rate, num_particles=particles, key=_key(seed), mesh=_mesh(devices))
        _write(found, out, plot, as_json=as_json)
        _keep(trained, Alarms, table, found, rate=rate)
        about = f"alarms at a false-alarm rate of {rate:g}, by {len(found.ordinary.rows.scores):,} ordinary rows"
        _show(found.to_frame("series"), as_json, about)


@contextmanager
def _opened(run: Path, out: Path | None, plot: Path | None = None) -> "Iterator[Run]":
    """A run that reads tables; warnings about a table go to standard error."""
    import warnings

    from fivo._run import open_run
    from fivo._terminal.output import note
    from fivo.caching import compilation_cache
    from fivo.data import check_place
    from fivo.errors import InputError
    from fivo.extras import require

    require("polars", "Tables")
    if out is not None:
        check_place(out)
    if plot is not None:
        from fivo.report import check_figure

        check_figure(plot)
    compilation_cache()
    trained = open_run(run)
    if trained.table is None:
        raise InputError(f"{str(run)!r} was not trained on a table; fit one with `fivo fit my.csv`.")
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"fivo: warning: {message}")
        yield trained


def _write(found: Any, out: Path | None, plot: Path | None = None, *, as_json: bool = False) -> None:
    """Write the rows and the plot of a result; standard output is for JSON alone, where that was asked for."""
    from fivo._terminal.output import note, say
    from fivo.data import write_table

    tell = note if as_json else say
    if out is not None:
        rows = found.to_frame()
        write_table(out, rows)
        tell(f"wrote {out}: {rows.height:,} rows")
    if plot is not None:
        from fivo.report import write_figure

        write_figure(plot, found.plot())
        tell(f"wrote {plot}")


def _keep(run: "Run", kind: "type[Drawing]", table: Path, found: Any, **more: Any) -> None:
    """Write what the run's page shows into its directory, unless that cannot be written."""
    from fivo._terminal.output import note

    tracks = [track.record() for track in found.tracks()]
    try:
        run.directory.write(kind(table=table.name, time_label=found.time_label, tracks=tracks, **more))
    except OSError as problem:
        note(f"fivo: {kind.FILE} of the run was not written ({problem.strerror}); `fivo report` will not show it.")


def _key(seed: int) -> Any:
    import jax

    return jax.random.key(seed)


def _mesh(devices: int | None) -> Any:
    from fivo.devices import data_mesh

    return None if devices is None else data_mesh(devices)


def _show(series: Any, as_json: bool, about: str) -> None:
    from fivo._terminal.output import console, say_json

    if as_json:
        for row in series.iter_rows(named=True):
            say_json(row)
        return
    from rich.table import Table

    shown = Table(*series.columns, title=f"{series.height:,} series, {about}")
    ordered = series.sort("p_value") if "p_value" in series.columns else series
    for row in ordered.head(SHOWN).iter_rows():
        shown.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell)[:60] for cell in row))
    screen = console()
    screen.print(shown)
    if series.height > SHOWN:
        screen.print(f"and {series.height - SHOWN:,} others; --json prints all")


def levels_of(text: str) -> tuple[float, ...]:
    """The quantiles of an option."""
    from fivo.errors import InputError

    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0 < level < 1 for level in levels):
        raise InputError(f"--quantiles must be numbers between 0 and 1, separated by commas, got {text!r:.60}.")
    return levels
