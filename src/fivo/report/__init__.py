"""Music, pictures, charts and pages from results, without JAX.

A function `plot_*` returns a matplotlib figure; a function `write_*` writes a file.
"""

from fivo.report.diagnosis import plot_diagnosis
from fivo.report.figures import write_figure
from fivo.report.lineage import plot_lineage, write_lineage
from fivo.report.lines import Line, Panel
from fivo.report.midi import write_midi
from fivo.report.page import report_page
from fivo.report.panels import plot_panels
from fivo.report.pianoroll import plot_pianoroll, write_pianoroll
from fivo.report.reading import Sources, read_sources
from fivo.report.sound import write_samples, write_wav
from fivo.report.text import as_csv, as_json, as_latex, as_markdown
from fivo.report.training import plot_training

__all__ = [
    "Line",
    "Panel",
    "Sources",
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "plot_diagnosis",
    "plot_lineage",
    "plot_panels",
    "plot_pianoroll",
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
