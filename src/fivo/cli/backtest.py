"""`fivo backtest`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.runs import Backtest

OVERALL = {
    "crps": "CRPS",
    "energy": "energy",
    "log_score": "log score",
    "mae": "MAE",
    "rmse": "RMSE",
    "coverage80": "in 80 %",
    "coverage95": "in 95 %",
    "brier": "Brier",
    "log_mass": "log mass",
}
"""Scores by their headings."""
OF_COLUMNS = [name for name in OVERALL if name not in ("energy", "log_score")]


def backtest(
    run: Annotated[Path, Parameter(help="The run's directory.")],
    *,
    windows: int = 5,
    horizon: int = 24,
    season: int | None = None,
    table: Path | None = None,
    out: Path | None = None,
    samples: int = 200,
    particles: int = 200,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """Compare a run's forecasts of its test rows with seasonal-naive and an exact linear-Gaussian model.

    Parameters stay as they were fitted; all earlier rows are a forecast's context. Inputs come from the table.

    Parameters
    ----------
    windows
        Forecasts of each series, from origins evenly spread over its test rows.
    horizon
        Rows of each forecast.
    season
        Rows of a season, for seasonal-naive. [24 for hours, 7 for days, 12 for months, 4 for quarters, else 1]
    table
        A table to take windows from instead; rows that the run was trained on are only context.
    out
        Where to put the scores of every window: a .csv, .parquet or .arrow file.
    samples
        Draws of each forecast.
    particles
        Number of particles of the filter; exact models need none.
    seed
        Random seed.
    as_json
        Print one JSON object instead of tables.
    """
    from fivo._run import open_run
    from fivo._terminal.output import note, say, say_json
    from fivo._terminal.progress import Bar
    from fivo.caching import compilation_cache
    from fivo.data import check_place, write_table
    from fivo.extras import require

    require("polars", "Tables")
    if out is not None:
        check_place(out)
    compilation_cache()
    with Bar("backtesting") as bar:

        def progress(what: str, done: int, total: int) -> None:
            bar.label = what
            bar.update(done, total=total)

        found = open_run(run).backtest(
            windows=windows,
            horizon=horizon,
            season=season,
            table=table,
            num_samples=samples,
            num_particles=particles,
            seed=seed,
            progress=progress,
            fit_companion=_fit_companion,
            warn=lambda sentence: note(f"fivo: warning: {sentence}"),
        )
    if out is not None:
        write_table(out, _rows(found))
        (note if as_json else say)(f"wrote {out}: {len(found.each):,} rows")
    if as_json:
        say_json(found)
    else:
        show(found)


def _fit_companion(dataset: Any, directory: Path) -> "Run":
    """With progress; what was fitted before is only read."""
    from fivo._run import prepare
    from fivo.cli.training import train_with_progress

    return train_with_progress(prepare("linear-gaussian", dataset), directory, label="fitting linear-gaussian")


def _rows(found: "Backtest") -> Any:
    """One row for each window and model."""
    import polars as pl

    columns = ("model", "series", "origin", "crps", "energy", "log_score", "mae")
    rows: dict[str, list[Any]] = {name: [getattr(window, name) for window in found.each] for name in columns}
    for name in found.each[0].columns:
        rows[f"crps_{name}"] = [window.columns[name] for window in found.each]
    return pl.DataFrame(rows, schema_overrides={name: pl.Float64 for name in rows if name not in columns[:3]})


def show(found: "Backtest") -> None:
    """Print the scores of every model, and those of every column below."""
    from rich.table import Column, Table

    from fivo._terminal.output import console

    screen = console()
    of = f"{found.windows} windows of {found.horizon} rows" + (
        f" in each of {found.series}" if found.series > 1 else ""
    )
    title = f"Forecasts of {found.data}: {of}{' series' if found.series > 1 else ''}, season {found.season}"
    scores = [name for name in OVERALL if any(getattr(model, name) is not None for model in found.models.values())]
    if len(next(iter(found.models.values())).columns) == 1:
        scores = [name for name in scores if name != "energy"]  # which is the CRPS of one column
    table = Table(Column("model", no_wrap=True), title=title)
    for name in scores:
        table.add_column(OVERALL[name], justify="right")
    for model, overall in found.models.items():
        table.add_row(_own(found, model), *(_shown(getattr(overall, name)) for name in scores))
    screen.print(table)
    screen.print(
        "* is this run. Errors are in deviations of each column in train, smaller is better; log score: log p(rows of "
        "a window | rows before it) per row in the table's units, larger is better."
    )
    names = list(next(iter(found.models.values())).columns)
    kept = [
        n for n in OF_COLUMNS if any(getattr(m.columns[c], n) is not None for m in found.models.values() for c in names)
    ]
    detail = Table("column", Column("model", no_wrap=True), title="Every column in its own units")
    for name in kept:
        detail.add_column(OVERALL[name], justify="right")
    for column in names:
        for model, overall in found.models.items():
            cells = (_shown(getattr(overall.columns[column], name)) for name in kept)
            detail.add_row(column[:40], _own(found, model), *cells)
    screen.print(detail)
    for sentence in found.notes:
        screen.print(sentence, soft_wrap=True)


def _own(found: "Backtest", model: str) -> str:
    return f"{model} *" if model == found.own else model


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
