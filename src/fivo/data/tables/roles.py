"""Which column of a table is used as what."""

from collections.abc import Sequence

from fivo.data.foreign import shown
from fivo.data.tables.backend import Frame
from fivo.data.tables.cells import column_of
from fivo.errors import InputError


def roles(
    frame: Frame,
    id_column: str | None,
    time_column: str | None,
    values: Sequence[str] | None,
    inputs: Sequence[str],
    static: Sequence[str],
    split: str | None,
) -> dict[str, list[str]]:
    """Which column is used as what; by default all others are values. No column may have two uses."""
    for what, given in (("values", values), ("inputs", inputs), ("static", static)):
        if isinstance(given, str):
            raise InputError(f"`{what}` must be a list of columns, got the text {given!r:.40}; use [{given!r:.40}].")
    single = [column for column in (id_column, time_column) if column is not None]
    if split not in (None, "time", "series"):
        single.append(split)
    if values is None:
        values = [column for column in frame.columns if column not in (*single, *inputs, *static)]
    if not values:
        raise InputError("a table must have at least one column of values, got none; name some.")
    used = [*single, *values, *inputs, *static]
    for column in used:
        column_of(frame, column)
    twice = next((column for column in used if used.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"a column must have one use, but {shown(twice)} is named twice.")
    return {"values": list(values), "inputs": list(inputs), "static": list(static)}
