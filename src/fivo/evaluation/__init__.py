"""Evaluation: a trained run's bounds on any split, what limits them, and new sequences from it."""

from fivo.evaluation.diagnosis import diagnose, diagnose_model, filter_of
from fivo.evaluation.lineage import Lineage, trace_lineage
from fivo.evaluation.relative import read_baseline, relative_to
from fivo.evaluation.run import Run, open_run
from fivo.evaluation.sampling import sample
from fivo.evaluation.scores import evaluate

__all__ = [
    "Lineage",
    "Run",
    "diagnose",
    "diagnose_model",
    "evaluate",
    "filter_of",
    "open_run",
    "read_baseline",
    "relative_to",
    "sample",
    "trace_lineage",
]
