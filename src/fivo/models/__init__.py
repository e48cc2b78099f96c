"""Models: the contract, and models whose evidence is known exactly."""

from fivo.models.contract import SequenceModel
from fivo.models.discrete_hmm import DiscreteHMM
from fivo.models.gaussian import Gaussian
from fivo.models.kalman import Moments
from fivo.models.linear_gaussian import LinearGaussian
from fivo.models.scoring import log_prob, observation_log_prob
from fivo.models.simulate import Generator, Simulation, simulate
from fivo.models.stochastic_volatility import StochasticVolatility

__all__ = [
    "DiscreteHMM",
    "Gaussian",
    "Generator",
    "LinearGaussian",
    "Moments",
    "SequenceModel",
    "Simulation",
    "StochasticVolatility",
    "log_prob",
    "observation_log_prob",
    "simulate",
]
