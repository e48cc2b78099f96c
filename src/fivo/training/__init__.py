"""Training: the optimizer step, the loop, checkpoints and run directories."""

from fivo.training.commit import code_commit
from fivo.training.groups import Update
from fivo.training.identity import digest, name_of
from fivo.training.loop import Callback, Event, Stopped, Watchers, train
from fivo.training.optimizer import Optimizer, adam, own_optimizer
from fivo.training.plan import Plan, make_plan
from fivo.training.run_directory import RunDirectory
from fivo.training.step import Trainer
from fivo.training.twists import density_ratio, temporal_difference

__all__ = [
    "Callback",
    "Event",
    "Optimizer",
    "Plan",
    "RunDirectory",
    "Stopped",
    "Trainer",
    "Update",
    "Watchers",
    "adam",
    "code_commit",
    "density_ratio",
    "digest",
    "make_plan",
    "name_of",
    "own_optimizer",
    "temporal_difference",
    "train",
]
