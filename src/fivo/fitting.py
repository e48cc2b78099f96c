"""Training from Python in one call."""

import os
from pathlib import Path
from typing import Any

from fivo.data import Dataset
from fivo.evaluation import Run, open_run
from fivo.training import build_dataset, dataset_setting, make_config, train
from fivo.training.loop import Report


def fit(
    dataset: str | Path | Dataset = "bach",
    *,
    out: str | os.PathLike,
    data_dir: str | Path | None = None,
    override: bool = False,
    report: Report = lambda row: None,
    **settings: Any,
) -> Run:
    """Train a model on a dataset (a name, a path or a `Dataset`) and return the run.

    `settings` are the options of `fivo train`. A run that was interrupted is continued; one that is done is only read.
    """
    name = dataset.name if isinstance(dataset, Dataset) else dataset_setting(str(dataset))
    config = make_config({"dataset": name, **settings})
    data = dataset if isinstance(dataset, Dataset) else build_dataset(config, data_dir)
    train(config, out, data, override=override, report=report)
    return open_run(out, dataset=data)
