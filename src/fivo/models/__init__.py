"""Models: the contract, models whose evidence is known exactly, and networks: the paper's and the deep Markov model."""

from fivo.constants import Constant
from fivo.models._check import CheckReport, Finding, check_model
from fivo.models._contract import (
    SequenceModel,
    check_inputs,
    check_kind,
    check_streams,
    has_initial_prior,
    has_twist,
)
from fivo.models._covariance import Covariance
from fivo.models._discrete_hmm import DiscreteHMM
from fivo.models._dmm import DMM
from fivo.models._drift_diffusion import DriftDiffusion, DriftTwist
from fivo.models._emissions import (
    BernoulliEmission,
    CategoricalEmission,
    Emission,
    MixedEmission,
    NegativeBinomialEmission,
    NormalEmission,
    PoissonEmission,
    StudentTEmission,
)
from fivo.models._extend import (
    Ahead,
    Extension,
    Frame,
    Kinds,
    Propose,
    TwistedState,
    extend,
    inspect_step,
    log_twist_of,
    start_state,
    untwisted,
)
from fivo.models._held_prior import HeldPrior
from fivo.models._hodgkin_huxley import Channel, HodgkinHuxley
from fivo.models._kalman import KalmanState, KalmanStep, Moments
from fivo.models._latent_variable import LatentVariableModel
from fivo.models._latents import CategoricalLatent, Latent, NormalLatent
from fivo.models._linear_gaussian import LinearGaussian
from fivo.models._lorenz import Lorenz63
from fivo.models._next_observation_twist import NextObservation, NextObservationTwist
from fivo.models._proposals import LinearProposal, ProductProposal, Proposal, Proposed, ResidualProposal
from fivo.models._quadrature_twist import AuxiliaryTwist, QuadratureTwist
from fivo.models._recurrent_twist import RecurrentTwist
from fivo.models._simulate import Generator, Simulation, simulate
from fivo.models._srnn import SRNN
from fivo.models._stochastic_volatility import StochasticVolatility
from fivo.models._structural import num_structural_latents, structural_start
from fivo.models._trajectories import (
    Densities,
    Reading,
    densities,
    draw,
    log_prior_ratio,
    over_time,
    read,
    read_batch,
    shown,
)
from fivo.models._twisted import ExactTwist, Twist, Twisted
from fivo.models._vae import VAE
from fivo.models._vrnn import VRNN

__all__ = [
    "DMM",
    "SRNN",
    "VAE",
    "VRNN",
    "Ahead",
    "AuxiliaryTwist",
    "BernoulliEmission",
    "CategoricalEmission",
    "CategoricalLatent",
    "Channel",
    "CheckReport",
    "Constant",
    "Covariance",
    "Densities",
    "DiscreteHMM",
    "DriftDiffusion",
    "DriftTwist",
    "Emission",
    "ExactTwist",
    "Extension",
    "Finding",
    "Frame",
    "Generator",
    "HeldPrior",
    "HodgkinHuxley",
    "KalmanState",
    "KalmanStep",
    "Kinds",
    "Latent",
    "LatentVariableModel",
    "LinearGaussian",
    "LinearProposal",
    "Lorenz63",
    "MixedEmission",
    "Moments",
    "NegativeBinomialEmission",
    "NextObservation",
    "NextObservationTwist",
    "NormalEmission",
    "NormalLatent",
    "PoissonEmission",
    "ProductProposal",
    "Proposal",
    "Propose",
    "Proposed",
    "QuadratureTwist",
    "Reading",
    "RecurrentTwist",
    "ResidualProposal",
    "SequenceModel",
    "Simulation",
    "StochasticVolatility",
    "StudentTEmission",
    "Twist",
    "Twisted",
    "TwistedState",
    "check_inputs",
    "check_kind",
    "check_model",
    "check_streams",
    "densities",
    "draw",
    "extend",
    "has_initial_prior",
    "has_twist",
    "inspect_step",
    "log_prior_ratio",
    "log_twist_of",
    "num_structural_latents",
    "over_time",
    "read",
    "read_batch",
    "shown",
    "simulate",
    "start_state",
    "structural_start",
    "untwisted",
]
