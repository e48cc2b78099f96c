"""Sequential Monte Carlo: the one particle filter, over batches or one frame at a time, and what is built on it."""

from fivo.smc.conditional import conditional_filter
from fivo.smc.filter import FilterResult, filter
from fivo.smc.gibbs import draw_trajectory, particle_gibbs
from fivo.smc.online import OnlineResult, OnlineState, finish, init, step
from fivo.smc.smoothing import backward_simulate, fixed_lag
from fivo.smc.step import Particles, StepInfo
from fivo.smc.tempering import anneal
from fivo.smc.trajectories import filtered_mean, lineages, trajectories

__all__ = [
    "FilterResult",
    "OnlineResult",
    "OnlineState",
    "Particles",
    "StepInfo",
    "anneal",
    "backward_simulate",
    "conditional_filter",
    "draw_trajectory",
    "filter",
    "filtered_mean",
    "finish",
    "fixed_lag",
    "init",
    "lineages",
    "particle_gibbs",
    "step",
    "trajectories",
]
