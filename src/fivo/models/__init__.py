"""Models: the contract, models whose evidence is known exactly, and the paper's recurrent networks."""

from fivo.models.contract import SequenceModel
from fivo.models.discrete_hmm import DiscreteHMM
from fivo.models.emissions import BernoulliEmission, CategoricalEmission, Emission, NormalEmission
from fivo.models.gaussian import Gaussian
from fivo.models.kalman import Moments
from fivo.models.latent_variable import LatentVariableModel
from fivo.models.latents import CategoricalLatent, Latent, NormalLatent
from fivo.models.linear_gaussian import LinearGaussian
from fivo.models.scoring import log_prob, observation_log_prob
from fivo.models.simulate import Generator, Simulation, simulate
from fivo.models.srnn import SRNN
from fivo.models.stochastic_volatility import StochasticVolatility
from fivo.models.vae import VAE
from fivo.models.vrnn import VRNN

__all__ = [
    "SRNN",
    "VAE",
    "VRNN",
    "BernoulliEmission",
    "CategoricalEmission",
    "CategoricalLatent",
    "DiscreteHMM",
    "Emission",
    "Gaussian",
    "Generator",
    "Latent",
    "LatentVariableModel",
    "LinearGaussian",
    "Moments",
    "NormalEmission",
    "NormalLatent",
    "SequenceModel",
    "Simulation",
    "StochasticVolatility",
    "log_prob",
    "observation_log_prob",
    "simulate",
]
