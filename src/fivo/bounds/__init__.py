"""Monte Carlo objectives: lower bounds on log p(x), each the log of an unbiased positive estimator of p(x)."""

from fivo.bounds import temperatures
from fivo.bounds._ais import AIS
from fivo.bounds._elbo import ELBO
from fivo.bounds._exact import Exact
from fivo.bounds._fivo import FIVO
from fivo.bounds._iwae import IWAE
from fivo.bounds._marginal import MarginalFIVO
from fivo.bounds._mis import MIS
from fivo.bounds._proposals import AffineGate, AffineProposal, ConstantGate, Gate, OwnProposal, Proposal
from fivo.bounds._result import Bound, BoundInfo, BoundResult, learned
from fivo.bounds._sandwich import Sandwich, sandwich
from fivo.bounds._sixo import SIXO
from fivo.bounds._smc_sampler import SMCSampler
from fivo.bounds.temperatures import FixedTemperatures, LearnedTemperatures, Temperatures
from fivo.smc import HMC, Copy, Kernel, Leapfrog, RandomWalk

__all__ = [
    "AIS",
    "ELBO",
    "FIVO",
    "HMC",
    "IWAE",
    "MIS",
    "SIXO",
    "AffineGate",
    "AffineProposal",
    "Bound",
    "BoundInfo",
    "BoundResult",
    "ConstantGate",
    "Copy",
    "Exact",
    "FixedTemperatures",
    "Gate",
    "Kernel",
    "Leapfrog",
    "LearnedTemperatures",
    "MarginalFIVO",
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
