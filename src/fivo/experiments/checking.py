"""What an experiment's table, figure and published numbers say of its grid, before anything is trained."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fivo.errors import InputError

if TYPE_CHECKING:
    from fivo.experiments.experiment import Document, Evaluation

Cell = dict[str, Any]


def scores_of(evaluation: "Evaluation") -> list[Cell]:
    """The keys of the numbers that every cell has: its splits and, where there are any, what is measured on them."""
    measures = [{"measure": name} for name in evaluation.measures] or [{}]
    return [{"split": split, **measure} for split in evaluation.splits for measure in measures]


def check_places(document: "Document", cells: Sequence[Cell], keys: Sequence[str], where: str) -> None:
    """Refuse keys that the grid does not have, cells that fall together or apart, and numbers of no cell."""
    _check_keys(document, keys, where)
    _check_layout(document, cells, where)
    _check_baseline(document, cells, where)
    for row in document.published:
        _check_published(row, document, cells, where)


def _check_keys(document: "Document", keys: Sequence[str], where: str) -> None:
    figure, table = document.figure, document.table
    of_scores = ("split", "measure") if document.evaluation.measures else ("split",)
    used = {
        "table": ([*table.rows, *table.columns] if table else [], {*keys, *of_scores}),
        "evaluation.relative_to": (list(document.evaluation.relative_to), {*keys}),
        "figure": ([key for key in (figure.panels, figure.lines) if key] if figure else [], {*keys}),
        "published": ([key for row in document.published for key in row if key != "value"], {*keys, *of_scores}),
    }
    for place, (names, known) in used.items():
        for name in names:
            if name not in known:
                raise InputError(
                    f"the keys of {place} in {where!r} must be some of {', '.join(sorted(known))}, got {name!r:.60}; "
                    "use the keys of its grid."
                )


def _check_layout(document: "Document", cells: Sequence[Cell], where: str) -> None:
    if document.table is None:
        return
    named = [*document.table.rows, *document.table.columns]
    scored = [{**cell, **score} for cell in cells for score in scores_of(document.evaluation)]
    for number, cell in enumerate(scored):
        for other in scored[:number]:
            if all(cell[key] == other[key] for key in named):
                apart = ", ".join(key for key in cell if cell[key] != other[key])
                raise InputError(
                    f"{where!r} has a table in which two cells that differ in {apart} have one place; add it to the "
                    "table's rows or columns."
                )


def _check_baseline(document: "Document", cells: Sequence[Cell], where: str) -> None:
    wanted = document.evaluation.relative_to
    if wanted and document.evaluation.measures:
        raise InputError(f"{where!r} must have evaluation.relative_to or evaluation.measures, got both; leave one out.")
    found = sum(_fits(cell, wanted) for cell in cells)
    if wanted and found != 1:
        raise InputError(
            f"evaluation.relative_to in {where!r} must fit one cell of its grid, got {found}; give the keys of one."
        )


def _check_published(row: dict[str, Any], document: "Document", cells: Sequence[Cell], where: str) -> None:
    if not isinstance(row.get("value"), int | float):
        raise InputError(f"{where!r} has the published row {row!r:.90} without a number as its value; add it.")
    scores = scores_of(document.evaluation)
    wanted = {key: value for key, value in row.items() if key not in ("value", "split", "measure")}
    of_score = {key: row[key] for key in ("split", "measure") if key in row}
    if not any(_fits(score, of_score) for score in scores) or not any(_fits(cell, wanted) for cell in cells):
        named = ", ".join(f"{key}={value!r:.40}" for key, value in row.items() if key != "value")
        raise InputError(
            f"{where!r} has a published row for {named or 'an unknown split'}, which its grid does not have; correct "
            "the row or the grid."
        )


def _fits(cell: Cell, wanted: dict[str, Any]) -> bool:
    return all(cell.get(key) == value for key, value in wanted.items())
