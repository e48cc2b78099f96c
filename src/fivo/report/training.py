"""How runs went: the numbers that training wrote, over its steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fivo.errors import InputError
from fivo.report.lines import Line, Panel
from fivo.report.measures import MEASURES
from fivo.report.panels import plot_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]


def plot_training(
    metrics: Rows | Mapping[str, Rows], *, fields: Sequence[str] = ("bound", "validation"), title: str = ""
) -> "Figure":
    """Panels of numbers over the steps of training, a line for each run.

    Args:
        metrics: The rows of a run's metrics, dictionaries with a `step`; or those of several runs, by their labels.
        fields: What to draw, a panel each: of `bound`, `validation`, `kl`, `ess` and `gradient_norm`, or any other
            number of the rows.
        title: Of the whole figure.

    Returns:
        A matplotlib figure.
    """
    runs: Mapping[str, Rows] = metrics if isinstance(metrics, Mapping) else {"run": metrics}
    known = {name for rows in runs.values() for row in rows for name in row}
    missing = [field for field in fields if field not in known]
    if not fields or missing:
        raise InputError(
            f"`fields` must name numbers of the metrics ({', '.join(sorted(known - {'step'})):.200}), got "
            f"{missing[0] if missing else 'none'!r:.60}."
        )
    return plot_panels([_panel(field, runs) for field in fields], title=title)


def _panel(field: str, runs: Mapping[str, Rows]) -> Panel:
    measure = MEASURES.get(field)
    lines = []
    for label, rows in runs.items():
        known = [row for row in rows if field in row]
        lines.append(Line(label, [row["step"] for row in known], [row[field] for row in known]))
    if measure is None:
        return Panel(lines, field, "optimizer step", field)
    return Panel(lines, measure.title, "optimizer step", measure.unit or measure.title, log_y=measure.log)
