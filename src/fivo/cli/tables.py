"""What a table holds, on a screen."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fivo.data import ColumnOverview, TableOverview

SHOWN = 5
"""Categories of a column that are listed."""


def listed(columns: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]


def show_table(
    path: str, *, id: str | None, time: str | None, values: str | None, inputs: str | None, static: str | None
) -> None:
    """Print kinds, missing cells and ranges of the columns of a table, and how its series are."""
    from rich.table import Table

    from fivo._terminal.output import console
    from fivo.data import check_table

    found = check_table(
        path, id=id, time=time, values=listed(values), inputs=listed(inputs) or (), static=listed(static) or ()
    )
    table = Table("column", "use", "kind (guessed)", "missing", "range")
    for column in found.columns:
        share = f"{column.missing:,} ({column.missing / found.rows:.1%})" if column.missing else "0"
        table.add_row(column.name[:60], column.use, column.kind, share, _range(column))
    screen = console()
    screen.print(f"{path}: {_series(found)}", soft_wrap=True)
    screen.print(table)


def _series(found: "TableOverview") -> str:
    lengths = found.lengths
    count = (
        f"{len(lengths):,} series of {min(lengths):,} to {max(lengths):,} rows" if len(lengths) > 1 else "one series"
    )
    text = f"{found.rows:,} rows, {count}"
    if found.begin is None:
        return f"{text}, in the order of the rows"
    unit = {"second": " s", "month": " months", "number": ""}[found.time.unit]
    step = "in steps of" if found.time.regular else "irregular, the median step is"
    return f"{text}, time from {found.begin} to {found.end}, {step} {found.time.step:g}{unit}"


def _range(column: "ColumnOverview") -> str:
    if column.categories:
        more = len(column.categories) - SHOWN
        labels = ", ".join(label[:20] for label in column.categories[:SHOWN])
        return labels + (f" and {more:,}{' or more' if more > 990 else ''} others" if more > 0 else "")
    if column.lowest is None:
        return ""
    return f"{column.lowest:.6g} to {column.highest:.6g}, mean {column.mean:.6g}"
