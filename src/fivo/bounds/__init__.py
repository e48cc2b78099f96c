"""Monte Carlo objectives: lower bounds on log p(x), each the log of an unbiased positive estimator of p(x)."""

from fivo.bounds import temperatures
from fivo.bounds.ais import AIS
from fivo.bounds.elbo import ELBO
from fivo.bounds.fivo import FIVO
from fivo.bounds.iwae import IWAE
from fivo.bounds.mis import MIS
from fivo.bounds.proposals import AffineGate, AffineProposal, ConstantGate, Gate, OwnProposal, Proposal
from fivo.bounds.result import Bound, BoundInfo, BoundResult, learned
from fivo.bounds.sandwich import Sandwich, sandwich
from fivo.bounds.smc_sampler import SMCSampler
from fivo.bounds.temperatures import FixedTemperatures, LearnedTemperatures, Temperatures
from fivo.smc.kernels import HMC, Copy, Kernel, Leapfrog, RandomWalk

__all__ = [
    "AIS",
    "ELBO",
    "FIVO",
    "HMC",
    "IWAE",
    "MIS",
    "AffineGate",
    "AffineProposal",
    "Bound",
    "BoundInfo",
    "BoundResult",
    "ConstantGate",
    "Copy",
    "FixedTemperatures",
    "Gate",
    "Kernel",
    "Leapfrog",
    "LearnedTemperatures",
    "OwnProposal",
    "Proposal",
    "RandomWalk",
    "SMCSampler",
    "Sandwich",
    "Temperatures",
    "learned",
    "sandwich",
    "temperatures",
]
