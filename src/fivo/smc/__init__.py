"""Sequential Monte Carlo: the one particle filter, over batches or one frame at a time."""

from fivo.smc.filter import FilterResult, filter
from fivo.smc.online import OnlineResult, OnlineState, finish, init, step
from fivo.smc.step import Particles, StepInfo
from fivo.smc.trajectories import filtered_mean, lineages, trajectories

__all__ = [
    "FilterResult",
    "OnlineResult",
    "OnlineState",
    "Particles",
    "StepInfo",
    "filter",
    "filtered_mean",
    "finish",
    "init",
    "lineages",
    "step",
    "trajectories",
]
