"""Evaluation: a trained run's bounds on any split, and new sequences from it."""

from fivo.evaluation.relative import read_baseline, relative_to
from fivo.evaluation.run import Run, open_run
from fivo.evaluation.sampling import sample
from fivo.evaluation.scores import evaluate

__all__ = ["Run", "evaluate", "open_run", "read_baseline", "relative_to", "sample"]
