"""Filtering variational objectives: a particle filter's log-likelihood estimate as a training objective.

Sub-packages load on first use, so that `import fivo` costs no more than a few milliseconds.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_LOCATIONS = {
    "Batch": "fivo.batch",
    "InputError": "fivo.errors",
    "load": "fivo.serialization",
    "save": "fivo.serialization",
}
_PACKAGES = ("batch", "bounds", "models", "resampling", "serialization", "smc", "weights")

__all__ = ["Batch", "InputError", "bounds", "load", "models", "resampling", "save", "smc", "weights"]

if TYPE_CHECKING:
    from fivo import bounds, models, resampling, smc, weights
    from fivo.batch import Batch
    from fivo.errors import InputError
    from fivo.serialization import load, save


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(_LOCATIONS[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"fivo.{name}")
    raise AttributeError(f"module 'fivo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
