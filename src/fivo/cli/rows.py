"""Commands on tables: `fivo score`, `filter`, `smooth`, `impute`, `forecast` and `anomaly`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.inference import TableModel

SHOWN = 10
"""Series that are listed on the screen."""


def score(
    run: Path,
    table: Path,
    *,
    out: Path | None = None,
    particles: int = 200,
    repeats: int = 3,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """Compute log p(row | rows before it) for every row of a table, and totals for every series.

    Parameters
    ----------
    run
        The run's directory.
    table
        A table with the columns that the run was trained on.
    out
        Where to put the rows: a .csv, .parquet or .arrow file.
    particles
        Number of particles of the filter; not needed by exact models.
    repeats
        Independent filters, for standard errors.
    seed
        Random seed.
    as_json
        Print one JSON object per series instead of a table.
    """
    with _Session(run, table, out, particles, seed) as session:
        rows, series = session.tables.score(table, repeats=repeats)
        session.finish(rows, series, as_json, "nats in the table's own units")


def filter(
    run: Path,
    table: Path,
    *,
    out: Path,
    quantiles: str = "0.1,0.5,0.9",
    particles: int = 200,
    seed: int = 0,
) -> None:
    """Give the latent state after every row, and what was expected of the row before it was seen.

    Parameters
    ----------
    run
        The run's directory.
    table
        A table with the columns that the run was trained on.
    out
        Where to put the rows: a .csv, .parquet or .arrow file.
    quantiles
        Quantiles of predictions and states, separated by commas.
    particles
        Number of particles.
    seed
        Random seed.
    """
    with _Session(run, table, out, particles, seed) as session:
        session.finish(session.tables.filter(table, quantiles=_levels(quantiles)))


def smooth(
    run: Path,
    table: Path,
    *,
    out: Path,
    quantiles: str = "0.1,0.5,0.9",
    particles: int = 200,
    seed: int = 0,
) -> None:
    """Give the latent state at every row given all rows of its series.

    Parameters
    ----------
    run
        The run's directory.
    table
        A table with the columns that the run was trained on.
    out
        Where to put the rows: a .csv, .parquet or .arrow file.
    quantiles
        Quantiles of the states, separated by commas.
    particles
        Number of particles.
    seed
        Random seed.
    """
    with _Session(run, table, out, particles, seed) as session:
        session.finish(session.tables.smooth(table, quantiles=_levels(quantiles)))


def impute(
    run: Path,
    table: Path,
    *,
    out: Path,
    quantiles: str = "0.1,0.9",
    samples: int = 100,
    particles: int = 200,
    seed: int = 0,
) -> None:
    """Fill the missing cells of a table, given all rows of their series; observed cells stay as they are.

    Parameters
    ----------
    run
        The run's directory.
    table
        A table with the columns that the run was trained on.
    out
        Where to put the table: a .csv, .parquet or .arrow file.
    quantiles
        Quantiles of filled cells, separated by commas.
    samples
        Draws of every missing cell.
    particles
        Number of particles.
    seed
        Random seed.
    """
    with _Session(run, table, out, particles, seed) as session:
        session.finish(session.tables.impute(table, quantiles=_levels(quantiles), num_samples=samples))


def forecast(
    run: Path,
    table: Path,
    *,
    horizon: int,
    out: Path,
    quantiles: str = "0.1,0.5,0.9",
    inputs_from: Path | None = None,
    samples: int = 200,
    particles: int = 200,
    seed: int = 0,
) -> None:
    """Forecast the rows that follow every series of a table.

    Parameters
    ----------
    run
        The run's directory.
    table
        The series so far.
    horizon
        Number of rows to forecast.
    out
        Where to put the forecast: a .csv, .parquet or .arrow file.
    quantiles
        Quantiles of the forecast, separated by commas.
    inputs_from
        A table with the inputs of the rows to come, for runs with inputs.
    samples
        Draws of every series.
    particles
        Number of particles.
    seed
        Random seed.
    """
    with _Session(run, table, out, particles, seed) as session:
        made = session.tables.forecast(
            table, horizon, quantiles=_levels(quantiles), inputs_from=inputs_from, num_samples=samples
        )
        session.finish(made.to_frame())


def anomaly(
    run: Path,
    table: Path,
    *,
    out: Path | None = None,
    rate: float = 0.01,
    particles: int = 200,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """Sound an alarm for rows and series that are stranger than ordinary ones, at a false-alarm rate that is met.

    p-values are ranks among the run's held-out data: its split `calibrate` if it has one, else `test`.

    Parameters
    ----------
    run
        The run's directory.
    table
        A table with the columns that the run was trained on.
    out
        Where to put the rows: a .csv, .parquet or .arrow file.
    rate
        The false-alarm rate, for rows and for series.
    particles
        Number of particles.
    seed
        Random seed.
    as_json
        Print one JSON object per series instead of a table.
    """
    with _Session(run, table, out, particles, seed) as session:
        calibration = session.run.calibration(session.tables)
        rows, series = session.tables.anomaly(table, *calibration, rate=rate)
        session.finish(rows, series, as_json, f"alarms at a false-alarm rate of {rate:g}")


class _Session:
    """A run that reads tables, with progress; nothing is written unless everything went well."""

    def __init__(self, run: Path, table: Path, out: Path | None, particles: int, seed: int) -> None:
        from fivo._run import open_run
        from fivo._terminal.progress import Bar
        from fivo.caching import compilation_cache
        from fivo.data import check_place
        from fivo.extras import require

        require("polars", "Tables")
        if out is not None:
            check_place(out)
        compilation_cache()
        self.table, self.out = table, out
        self.bar = Bar("reading")
        self.run: Run = open_run(run)
        self.tables: TableModel = self.run.on_tables(num_particles=particles, seed=seed, progress=self._progress)
        self.warned = False

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

        for sentence in self.tables.read(self.table)[1].warnings:
            note(f"fivo: warning: {sentence}")
        if self.out is not None:
            write_table(self.out, rows)
            say(f"wrote {self.out}: {rows.height:,} rows")
        if series is not None:
            _show(series, as_json, about)


def _show(series: Any, as_json: bool, about: str) -> None:
    import msgspec

    from fivo._terminal.output import console, say

    if as_json:
        for row in series.iter_rows(named=True):
            say(msgspec.json.encode(row).decode())
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


def _levels(text: str) -> tuple[float, ...]:
    from fivo.errors import InputError

    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0 < level < 1 for level in levels):
        raise InputError(f"--quantiles must be numbers between 0 and 1, separated by commas, got {text!r:.60}.")
    return levels
