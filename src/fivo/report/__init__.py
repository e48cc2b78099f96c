"""Music, pictures and charts from results, without JAX."""

from fivo.report.chart import Line as Line
from fivo.report.chart import Panel as Panel
from fivo.report.chart import line_chart as line_chart
from fivo.report.chart import panels as panels
from fivo.report.lineage import write_lineage as write_lineage
from fivo.report.midi import write_midi as write_midi
from fivo.report.page import report_page as report_page
from fivo.report.png import pianoroll_image as pianoroll_image
from fivo.report.png import write_pianoroll as write_pianoroll
from fivo.report.png import write_png as write_png
from fivo.report.reading import Sources as Sources
from fivo.report.reading import read_sources as read_sources
from fivo.report.sound import write_samples as write_samples
from fivo.report.sound import write_wav as write_wav
from fivo.report.text import as_csv as as_csv
from fivo.report.text import as_json as as_json
from fivo.report.text import as_latex as as_latex
from fivo.report.text import as_markdown as as_markdown
