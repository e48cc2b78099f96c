"""Sequential Monte Carlo: the one particle filter, over batches or one frame at a time, and what is built on it."""

from fivo.smc._conditional import conditional_filter
from fivo.smc._filter import ParticleFilter, check_filter, check_particles, check_twist, sequence_keys
from fivo.smc._gibbs import particle_gibbs
from fivo.smc._kernels import HMC, Copy, Kernel, Leapfrog, Moved, RandomWalk
from fivo.smc._marginal import MarginalParticleFilter
from fivo.smc._result import FilterResult, Record
from fivo.smc._rules import EVERY_PATH, Proposed, Rules
from fivo.smc._smoothing import backward_simulate, fixed_lag
from fivo.smc._step import Particles, StepInfo, initial_particles, select
from fivo.smc._stream import FilterState, StreamResult
from fivo.smc._tempering import Position, Tempered, anneal
from fivo.smc._trajectories import draw_trajectory, filtered_mean, lineages, trajectories

__all__ = [
    "EVERY_PATH",
    "HMC",
    "Copy",
    "FilterResult",
    "FilterState",
    "Kernel",
    "Leapfrog",
    "MarginalParticleFilter",
    "Moved",
    "ParticleFilter",
    "Particles",
    "Position",
    "Proposed",
    "RandomWalk",
    "Record",
    "Rules",
    "StepInfo",
    "StreamResult",
    "Tempered",
    "anneal",
    "backward_simulate",
    "check_filter",
    "check_particles",
    "check_twist",
    "conditional_filter",
    "draw_trajectory",
    "filtered_mean",
    "fixed_lag",
    "initial_particles",
    "lineages",
    "particle_gibbs",
    "select",
    "sequence_keys",
    "trajectories",
]
