"""The paper's tables and figures as data: grids of runs, the sweep that makes them, and what came of it.

Names load on first use: a worker pins itself to its cores before anything of JAX is imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

_LOCATIONS = {
    "Experiment": "experiment",
    "PlannedRun": "experiment",
    "check_data": "choosing",
    "chosen_runs": "choosing",
    "cluster_executor": "executors",
    "local_executor": "executors",
    "read_experiment": "experiment",
    "summarise": "tables",
    "sweep": "sweeping",
}

__all__ = [
    "Experiment",
    "PlannedRun",
    "check_data",
    "chosen_runs",
    "cluster_executor",
    "local_executor",
    "read_experiment",
    "summarise",
    "sweep",
]

if TYPE_CHECKING:
    from fivo.experiments.choosing import check_data, chosen_runs
    from fivo.experiments.executors import cluster_executor, local_executor
    from fivo.experiments.experiment import Experiment, PlannedRun, read_experiment
    from fivo.experiments.sweeping import sweep
    from fivo.experiments.tables import summarise


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(f"fivo.experiments.{_LOCATIONS[name]}"), name)
    raise AttributeError(f"module 'fivo.experiments' has no attribute {name!r}")
