"""Training and inference joined for users: `fit`, `Run` and `open_run`."""

from fivo._run.auto import BUDGET, check_settings, choose
from fivo._run.fitting import dataset_setting, fit, prepare, run_of
from fivo._run.history import History
from fivo._run.imports import imported, made_dataset, names_object, prepare_named
from fivo._run.run import Run, open_run
from fivo._run.uses import anomaly, filtered, forecast, impute, score, smoothed

__all__ = [
    "BUDGET",
    "History",
    "Run",
    "anomaly",
    "check_settings",
    "choose",
    "dataset_setting",
    "filtered",
    "fit",
    "forecast",
    "imported",
    "impute",
    "made_dataset",
    "names_object",
    "open_run",
    "prepare",
    "prepare_named",
    "run_of",
    "score",
    "smoothed",
]
