"""Music, pictures, charts and pages from results, without JAX.

A function `plot_*` returns a matplotlib figure; a function `write_*` writes a file.
"""

from fivo.report.diagnosis import plot_diagnosis
from fivo.report.figures import check_figure, write_figure
from fivo.report.lineage import plot_lineage, write_lineage
from fivo.report.lines import Line, Panel
from fivo.report.midi import write_midi
from fivo.report.page import report_page
from fivo.report.panels import plot_panels
from fivo.report.pianoroll import plot_pianoroll, write_pianoroll
from fivo.report.reading import Sources, read_sources
from fivo.report.series import plot_anomaly, plot_forecast, plot_imputed, plot_states
from fivo.report.sound import write_samples, write_wav
from fivo.report.text import as_csv, as_json, as_latex, as_markdown
from fivo.report.tracks import Track
from fivo.report.training import plot_training

__all__ = [
    "Line",
    "Panel",
    "Sources",
    "Track",
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "check_figure",
    "plot_anomaly",
    "plot_diagnosis",
    "plot_forecast",
    "plot_imputed",
    "plot_lineage",
    "plot_panels",
    "plot_pianoroll",
    "plot_states",
    "plot_training",
    "read_sources",
    "report_page",
    "write_figure",
    "write_lineage",
    "write_midi",
    "write_pianoroll",
    "write_samples",
    "write_wav",
]
