"""Filtering variational objectives: a particle filter's log-likelihood estimate as a training objective.

Sub-packages load on first use, so that `import fivo` costs no more than a few milliseconds.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_LOCATIONS = {
    "Batch": "fivo.batch",
    "Dataset": "fivo.data",
    "ParticleFilter": "fivo.smc",
    "Run": "fivo._run",
    "Sequence": "fivo.batch",
    "InputError": "fivo.errors",
    "anomaly": "fivo._run",
    "filtered": "fivo._run",
    "fit": "fivo._run",
    "forecast": "fivo._run",
    "impute": "fivo._run",
    "open_run": "fivo._run",
    "load": "fivo.serialization",
    "save": "fivo.serialization",
    "score": "fivo._run",
    "smoothed": "fivo._run",
}
_PACKAGES = (
    "bounds",
    "config",
    "data",
    "devices",
    "distributions",
    "experiments",
    "inference",
    "gradients",
    "models",
    "report",
    "resampling",
    "runs",
    "serialization",
    "settings",
    "smc",
    "training",
    "weights",
)

__all__ = [
    "Batch",
    "Dataset",
    "InputError",
    "ParticleFilter",
    "Run",
    "Sequence",
    "anomaly",
    "bounds",
    "config",
    "data",
    "devices",
    "distributions",
    "experiments",
    "filtered",
    "fit",
    "forecast",
    "gradients",
    "impute",
    "inference",
    "load",
    "models",
    "open_run",
    "report",
    "resampling",
    "runs",
    "save",
    "score",
    "serialization",
    "settings",
    "smc",
    "smoothed",
    "training",
    "weights",
]

if TYPE_CHECKING:
    from fivo import (
        bounds,
        config,
        data,
        devices,
        distributions,
        experiments,
        gradients,
        inference,
        models,
        report,
        resampling,
        runs,
        serialization,
        settings,
        smc,
        training,
        weights,
    )
    from fivo._run import Run, anomaly, filtered, fit, forecast, impute, open_run, score, smoothed
    from fivo.batch import Batch, Sequence
    from fivo.data import Dataset
    from fivo.errors import InputError
    from fivo.serialization import load, save
    from fivo.smc import ParticleFilter


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(_LOCATIONS[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"fivo.{name}")
    raise AttributeError(f"module 'fivo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
