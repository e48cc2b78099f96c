"""Uses of a trained model: its bounds on any split, what limits them, and new sequences from it."""

from fivo.inference.curves import Curves
from fivo.inference.diagnosis import diagnose, diagnose_model
from fivo.inference.lineage import Lineage, trace_lineage
from fivo.inference.relative import read_baseline, relative_to
from fivo.inference.sampling import sample
from fivo.inference.scores import bounding_options, evaluate
from fivo.inference.trained import Trained, filter_of

__all__ = [
    "Curves",
    "Lineage",
    "Trained",
    "bounding_options",
    "diagnose",
    "diagnose_model",
    "evaluate",
    "filter_of",
    "read_baseline",
    "relative_to",
    "sample",
    "trace_lineage",
]
