"""Uses of a trained model: its bounds on any split, what limits them, and new sequences from it."""

from fivo.inference.accuracy import crps
from fivo.inference.anomalies import Anomalies, Calibration, Ordinary
from fivo.inference.curves import Curves
from fivo.inference.diagnosis import diagnose, diagnose_model
from fivo.inference.exporting import export_model
from fivo.inference.forecasts import Forecast
from fivo.inference.imputations import Imputed
from fivo.inference.likelihoods import Likelihoods
from fivo.inference.lineage import Lineage, trace_lineage
from fivo.inference.relative import read_baseline, relative_to
from fivo.inference.rowfilters import ExactRowFilter, RowFilter, Rows, row_filter
from fivo.inference.sampling import sample
from fivo.inference.scored import ScoredRow
from fivo.inference.scores import bounding_options, evaluate
from fivo.inference.states import Filtered, Smoothed
from fivo.inference.streams import RowStream
from fivo.inference.trained import Trained, filter_of

__all__ = [
    "Anomalies",
    "Calibration",
    "Curves",
    "ExactRowFilter",
    "Filtered",
    "Forecast",
    "Imputed",
    "Likelihoods",
    "Lineage",
    "Ordinary",
    "RowFilter",
    "RowStream",
    "Rows",
    "ScoredRow",
    "Smoothed",
    "Trained",
    "bounding_options",
    "crps",
    "diagnose",
    "diagnose_model",
    "evaluate",
    "export_model",
    "filter_of",
    "read_baseline",
    "relative_to",
    "row_filter",
    "sample",
    "trace_lineage",
]
