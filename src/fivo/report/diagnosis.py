"""What a diagnosis found, drawn: how tight the bound is against N, and how the filter fares over time."""

from typing import TYPE_CHECKING, Any

import msgspec

from fivo.report.lines import Line, Panel
from fivo.report.panels import plot_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAPS = {"half_variance": "½ relative variance of p̂", "half_log_variance": "½ variance of log p̂"}
OVER_TIME = {
    "ess": ("Effective sample size", "share of N"),
    "resampled": ("Resampling", "share of filters"),
    "kl": ("KL(q‖p)", "nats per timestep"),
    "ancestors": ("Ancestors of the last particles", "share of N"),
}


def plot_diagnosis(diagnosis: Any, *, title: str = "") -> "Figure":
    """Plot a diagnosis in six panels.

    The bound and three estimates of its gap against the number of particles; effective sample size, resampling, KL(q‖p)
    and the share of particles that are ancestors of the last ones, over time.

    Args:
        diagnosis: What `fivo.inference.diagnose` returns, or its record (`fivo.runs.Diagnosis`).
        title: Above the panels.

    Returns:
        A matplotlib figure.
    """
    rows = msgspec.to_builtins(diagnosis)["rows"]
    numbers = [row["particles"] for row in rows]
    bound = Line("bound ± standard error", numbers, [row["bound"] for row in rows], [r["standard_error"] for r in rows])
    gaps = [Line(label, numbers, [row[field] for row in rows]) for field, label in GAPS.items()]
    gaps.append(Line("sandwich, simulated data", numbers, [row["sandwich"]["gap"] for row in rows]))
    particles = "number of particles N"
    panels = [
        Panel([bound], "Bound", particles, "nats per timestep", log_x=True),
        Panel(gaps, "Estimates of the gap", particles, "nats per timestep", log_x=True, log_y=True),
    ]
    for field, (name, unit) in OVER_TIME.items():
        lines = []
        for row in rows:
            values = row["over_time"][field]
            lines.append(Line(f"N = {row['particles']}", list(range(1, len(values) + 1)), values))
        panels.append(Panel(lines, name, "timestep", unit))
    return plot_panels(panels, title=title)
