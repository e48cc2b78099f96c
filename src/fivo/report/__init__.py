"""Music, pictures, charts and pages from results, without JAX.

A function `plot_*` returns a matplotlib figure; a function `write_*` writes a file.
"""

from fivo.report.diagnosis import plot_diagnosis as plot_diagnosis
from fivo.report.figures import check_figure as check_figure
from fivo.report.figures import write_figure as write_figure
from fivo.report.lineage import plot_lineage as plot_lineage
from fivo.report.lineage import write_lineage as write_lineage
from fivo.report.lines import Line as Line
from fivo.report.lines import Panel as Panel
from fivo.report.midi import write_midi as write_midi
from fivo.report.page import report_page as report_page
from fivo.report.panels import plot_panels as plot_panels
from fivo.report.pianoroll import plot_pianoroll as plot_pianoroll
from fivo.report.pianoroll import write_pianoroll as write_pianoroll
from fivo.report.reading import Sources as Sources
from fivo.report.reading import read_sources as read_sources
from fivo.report.series import plot_anomaly as plot_anomaly
from fivo.report.series import plot_forecast as plot_forecast
from fivo.report.series import plot_imputed as plot_imputed
from fivo.report.series import plot_states as plot_states
from fivo.report.sound import write_samples as write_samples
from fivo.report.sound import write_wav as write_wav
from fivo.report.text import as_csv as as_csv
from fivo.report.text import as_json as as_json
from fivo.report.text import as_latex as as_latex
from fivo.report.text import as_markdown as as_markdown
from fivo.report.tracks import Track as Track
from fivo.report.training import plot_training as plot_training
