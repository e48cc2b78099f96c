"""The cells of a summary arranged in rows and columns, and how its numbers are written."""

from typing import Any, NamedTuple

WORDS = {"particles": "N", "hidden": "units", "dataset": "data", "weight_decay": "weight decay"}
DECIMALS = {"nats_per_step": 2, "nats_per_sequence": 0}
STAR = (
    "\\* the maximum over ELBO, IWAE and FIVO, chosen on the reported split: the paper's own convention, optimistic "
    "for these models."
)


class Grid(NamedTuple):
    """A table: `cells[i][j]` belongs to the values `rows[i]` of `row_keys` and to the keys and values `columns[j]`."""

    row_keys: list[str]
    rows: list[tuple[Any, ...]]
    columns: list[tuple[tuple[str, Any], ...]]
    cells: list[list[dict[str, Any] | None]]
    notes: list[str]


def arranged(summary: dict[str, Any]) -> Grid:
    """The table of an experiment; without a layout, bounds go down and the rest across.

    Columns that nothing was trained for are left out once there are others.
    """
    layout = summary["layout"] or _layout(summary["cells"])
    down, across = layout["rows"], layout["columns"]
    rows: dict[tuple, None] = {}
    columns: dict[tuple, None] = {}
    found = {}
    for cell in summary["cells"]:
        row = tuple(cell["keys"].get(key) for key in down)
        column = tuple((key, cell["keys"].get(key)) for key in across)
        rows.setdefault(row)
        columns.setdefault(column)
        found[row, column] = {**cell, "unit": summary["unit"]}
    known = {column for (_, column), cell in found.items() if cell["ours"] is not None}
    columns = {column: None for column in columns if not known or column in known}
    cells = [[found.get((row, column)) for column in columns] for row in rows]
    notes = [STAR] if any(cell["note"] for cell in summary["cells"]) else []
    notes += _seeds(summary["cells"]) + _effort(summary["cells"])
    words = [tuple(_value(key, value) for key, value in zip(down, row, strict=True)) for row in rows]
    return Grid([WORDS.get(key, key) for key in down], words, list(columns), cells, notes)


def _layout(cells: list[dict[str, Any]]) -> dict[str, list[str]]:
    keys = list(cells[0]["keys"]) if cells else []
    down = [key for key in ("particles", "bound", "smoothing") if key in keys] or keys[:1]
    return {"rows": down, "columns": [key for key in keys if key not in down]}


def _effort(cells: list[dict[str, Any]]) -> list[str]:
    partial = [cell for cell in cells if cell["selected"] and cell["runs_trained"] < cell["runs_planned"]]
    if not partial:
        return []
    return [
        f"In {len(partial)} of {len(cells)} cells not all planned runs are trained; the best of the trained is shown."
    ]


def _seeds(cells: list[dict[str, Any]]) -> list[str]:
    counts = {len(cell["selected"]) for cell in cells if cell["selected"]}
    if not counts:
        return []
    alone = "; cells without one are of a single run" if 1 in counts else ""
    if counts == {1}:
        return ["Each number is of a single run; ± is the standard error of its evaluation."]
    return [
        f"± is the standard error of the evaluation; (s.d.) is the standard deviation over the seeds, whose number "
        f"follows it{alone}."
    ]


def spread_text(cell: dict[str, Any]) -> str:
    """The standard deviation over seeds and their number; nothing for a single run."""
    deviation = cell.get("deviation")
    if deviation is None:
        return ""
    return f" (s.d. {number_text(deviation, cell['unit'], 1)}, {len(cell['selected'])} seeds)"


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return {True: "yes", False: "no"}[value]
    return str(value).upper() if key == "bound" else str(value)


def heading(column: tuple[tuple[str, Any], ...]) -> str:
    """The head of a column."""
    parts = []
    for key, value in column:
        word = f"{WORDS.get(key, key)} " if isinstance(value, bool | int | float) else ""
        parts.append(word + _value(key, value))
    return ", ".join(parts)


def number_text(value: int | float, unit: str, more: int = 0) -> str:
    """A score with the decimals of the paper, or more of them; measures have any size, and as many as show it."""
    if unit == "measure":
        return f"{value:,.{_decimals_of(value)}f}"
    decimals = DECIMALS[unit]
    return f"{value:,.{decimals + more if decimals else 0}f}"


def signed(value: int | float, unit: str) -> str:
    """A difference: positive is better than the paper, but for measures that are errors."""
    return f"{value:+,.{_decimals_of(value) if unit == 'measure' else DECIMALS[unit]}f}"


def _decimals_of(value: int | float) -> int:
    return 2 if abs(value) >= 10 else 3
