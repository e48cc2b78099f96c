"""Commands on tables: `fivo score`, `filter`, `smooth`, `impute`, `forecast` and `anomaly`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.inference import TableModel

SHOWN = 10
"""Series that are listed on the screen."""

RunFolder = Annotated[Path, Parameter(help="The run's directory.")]
TableFile = Annotated[Path, Parameter(help="A table with the columns that the run was trained on.")]
Out = Annotated[Path, Parameter(help="Where to put the rows: a .csv, .parquet or .arrow file.")]
Quantiles = Annotated[str, Parameter(help="Quantiles to give, separated by commas.")]
Particles = Annotated[int, Parameter(help="Number of particles of the filter; exact models need none.")]
Seed = Annotated[int, Parameter(help="Random seed.")]
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
    as_json: AsJson = False,
) -> None:
    """Compute log p(row | rows before it) for every row of a table, and totals for every series.

    Parameters
    ----------
    repeats
        Independent filters, for standard errors.
    """
    with _Session(run, out, particles, seed) as session:
        rows, series = session.tables.score(table, repeats=repeats)
        session.finish(rows, series, as_json, "nats in the table's own units")


def filter(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
    quantiles: Quantiles = "0.1,0.5,0.9",
    particles: Particles = 200,
    seed: Seed = 0,
) -> None:
    """Give the latent state after every row, and what was expected of the row before it was seen."""
    with _Session(run, out, particles, seed) as session:
        session.finish(session.tables.filter(table, quantiles=levels_of(quantiles)))


def smooth(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
    quantiles: Quantiles = "0.1,0.5,0.9",
    particles: Particles = 200,
    seed: Seed = 0,
) -> None:
    """Give the latent state at every row given all rows of its series."""
    with _Session(run, out, particles, seed) as session:
        session.finish(session.tables.smooth(table, quantiles=levels_of(quantiles)))


def impute(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out,
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
    with _Session(run, out, particles, seed) as session:
        session.finish(session.tables.impute(table, quantiles=levels_of(quantiles), num_samples=samples))


def forecast(
    run: RunFolder,
    table: TableFile,
    *,
    horizon: int,
    out: Out,
    quantiles: Quantiles = "0.1,0.5,0.9",
    inputs_from: Path | None = None,
    samples: int = 200,
    particles: Particles = 200,
    seed: Seed = 0,
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
    with _Session(run, out, particles, seed) as session:
        made = session.tables.forecast(
            table, horizon, quantiles=levels_of(quantiles), inputs_from=inputs_from, num_samples=samples
        )
        session.finish(made.to_frame())


def anomaly(
    run: RunFolder,
    table: TableFile,
    *,
    out: Out | None = None,
    rate: float = 0.01,
    particles: Particles = 200,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Sound an alarm for rows and series that are stranger than ordinary ones, at a false-alarm rate that is met.

    p-values are ranks among the run's held-out data: its split `calibrate` if it has one, else `test`.

    Parameters
    ----------
    rate
        The false-alarm rate, for rows and for series.
    """
    with _Session(run, out, particles, seed) as session:
        calibration = session.run.calibration(session.tables)
        rows, series = session.tables.anomaly(table, *calibration, rate=rate)
        session.finish(rows, series, as_json, f"alarms at a false-alarm rate of {rate:g}")


class _Session:
    """A run that reads tables, with progress; nothing is written unless everything went well."""

    def __init__(self, run: Path, out: Path | None, particles: int, seed: int) -> None:
        from fivo._run import open_run
        from fivo._terminal.output import note
        from fivo._terminal.progress import Bar
        from fivo.caching import compilation_cache
        from fivo.data import check_place
        from fivo.extras import require

        require("polars", "Tables")
        if out is not None:
            check_place(out)
        compilation_cache()
        self.out = out
        self.bar = Bar("reading")
        self.run: Run = open_run(run)
        self.tables: TableModel = self.run.on_tables(
            num_particles=particles,
            seed=seed,
            progress=self._progress,
            warn=lambda sentence: note(f"fivo: warning: {sentence}"),
        )

    def __enter__(self) -> "_Session":
        self.bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.__exit__(*error)

    def _progress(self, what: str, done: int, total: int) -> None:
        self.bar.label = what
        self.bar.update(done, total=total)

    def finish(self, rows: Any, series: Any = None, as_json: bool = False, about: str = "") -> None:
        """Write the rows, and show the series."""
        from fivo._terminal.output import note, say
        from fivo.data import write_table

        if self.out is not None:
            write_table(self.out, rows)
            # Standard output is for JSON alone, where that was asked for.
            (note if as_json else say)(f"wrote {self.out}: {rows.height:,} rows")
        if series is not None:
            _show(series, as_json, about)


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
