"""Uses of a trained model: its bounds on any split, what limits them, and new sequences from it."""

from fivo.inference.accuracy import brier, crps, energy_score, is_covered, log_mass
from fivo.inference.anomalies import Anomalies, Calibration, Ordinary
from fivo.inference.backtesting import ModelForecaster, backtest
from fivo.inference.curves import Curves
from fivo.inference.diagnosis import diagnose, diagnose_model
from fivo.inference.exporting import export_model
from fivo.inference.forecasts import Forecast
from fivo.inference.imputations import Imputed
from fivo.inference.likelihoods import Likelihoods
from fivo.inference.lineage import Lineage, trace_lineage
from fivo.inference.naive import SeasonalNaive
from fivo.inference.relative import read_baseline, relative_to
from fivo.inference.rowfilters import ExactRowFilter, RowFilter, Rows, row_filter
from fivo.inference.sampling import sample
from fivo.inference.scored import ScoredRow
from fivo.inference.scores import bounding_options, evaluate
from fivo.inference.states import Filtered, Smoothed
from fivo.inference.streams import RowStream
from fivo.inference.trained import Trained, filter_of
from fivo.inference.windows import Forecaster, Forecasts, Windows, guess_season, make_windows

__all__ = [
    "Anomalies",
    "Calibration",
    "Curves",
    "ExactRowFilter",
    "Filtered",
    "Forecast",
    "Forecaster",
    "Forecasts",
    "Imputed",
    "Likelihoods",
    "Lineage",
    "ModelForecaster",
    "Ordinary",
    "RowFilter",
    "RowStream",
    "Rows",
    "ScoredRow",
    "SeasonalNaive",
    "Smoothed",
    "Trained",
    "Windows",
    "backtest",
    "bounding_options",
    "brier",
    "crps",
    "diagnose",
    "diagnose_model",
    "energy_score",
    "evaluate",
    "export_model",
    "filter_of",
    "guess_season",
    "is_covered",
    "log_mass",
    "make_windows",
    "read_baseline",
    "relative_to",
    "row_filter",
    "sample",
    "trace_lineage",
]
