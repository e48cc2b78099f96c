"""Tables to files, in which no cell becomes a formula of a spreadsheet or a command to a terminal.

Texts may come from files of strangers. In a CSV, one that a spreadsheet would take for a formula gets a single quote
before it; control characters are written as \\x1b and the like in every format. Numbers, and texts that are numbers,
stay as they are.
"""

import re
from pathlib import Path
from typing import Any

from fivo.data.tables.backend import Frame, as_polars, polars, refusing_table
from fivo.data.tables.reading import ARROWS, PARQUETS
from fivo.errors import InputError
from fivo.files import replacing

_CONTROL = "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]"
"""C0, DEL, C1, ends of lines, and what turns the direction of writing."""
_FORMULA = r"^\s*[=+\-@\t\r]"
_CONTROLS = re.compile(_CONTROL)


def check_place(path: str | Path) -> None:
    """Refuse a file that no table can be written to, before there is one to write.

    Args:
        path: The file: .csv, .parquet or .arrow, in a folder that exists.
    """
    if Path(path).suffix.lower() not in (".csv", *PARQUETS, *ARROWS):
        raise InputError(f"a table is written to a .csv, .parquet or .arrow file, got {str(path)!r:.80}.")


def write_table(path: str | Path, table: Any) -> None:
    """Write a table, whole or not at all.

    Args:
        path: a .csv, a .parquet (.pq) or an .arrow (.feather, .ipc).
        table: a pandas, polars or pyarrow frame.
    """
    frame = as_polars(table)
    path = Path(path)
    suffix = path.suffix.lower()
    check_place(path)
    frame = harmless(frame, formulas=suffix == ".csv")
    with refusing_table(str(path), "place for this table", "choose another format"), replacing(path) as file:
        if suffix == ".csv":
            frame.write_csv(file)
        elif suffix in PARQUETS:
            frame.write_parquet(file)
        else:
            frame.write_ipc(file)


def harmless(frame: Frame, *, formulas: bool) -> Frame:
    """The table with control characters escaped in texts and names and, if `formulas`, a quote before formulas."""
    pl = polars()
    changed = []
    for name in frame.columns:
        column = frame.get_column(name)
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        elif column.dtype == pl.Object:
            raise InputError(f"column {name!r:.60} must hold numbers, texts or times to be written, got objects.")
        if column.dtype == pl.String:
            column = _harmless_texts(column, formulas)
        changed.append(column.alias(harmless_text(name, formulas=formulas)))
    names = [column.name for column in changed]
    if len(set(names)) < len(names):
        raise InputError("the columns of a table must have different names when control characters are escaped.")
    return pl.DataFrame(changed)


def _harmless_texts(column: Any, formulas: bool) -> Any:
    pl = polars()
    flagged = column.str.contains(_CONTROL)
    if formulas:
        number = column.str.strip_chars().cast(pl.Float64, strict=False).is_not_null()
        flagged = flagged | (column.str.contains(_FORMULA) & ~number)
    places = flagged.fill_null(False).arg_true()
    if not len(places):
        return column
    texts = [harmless_text(text, formulas=formulas) for text in column.gather(places).to_list()]
    return column.scatter(places, pl.Series(texts, dtype=pl.String))


def harmless_text(text: str, *, formulas: bool) -> str:
    """One text, as it is written; a number stays as it is."""
    escaped = _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    if formulas and re.match(_FORMULA, text) and not _is_number(text):
        return "'" + escaped
    return escaped


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text, re.ASCII) is not None
