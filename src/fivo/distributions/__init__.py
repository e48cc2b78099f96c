"""Distributions that numpyro lacks or computes slowly, and draws and log-densities with missing entries.

Everything else is numpyro's own; a distribution of yours needs `sample` and `log_prob`, as numpyro's have.
"""

from fivo.distributions._columns import Columns
from fivo.distributions._densities import log_prob, observation_log_prob, sample, weight_dtype
from fivo.distributions._factors import Bernoulli, NegativeBinomial, Normal, Poisson, StudentT, Symbols, softplus
from fivo.distributions._gaussian import Gaussian, inverse_tril, masked_covariance
from fivo.distributions._joint import Joint, discrete_log_prob

__all__ = [
    "Bernoulli",
    "Columns",
    "Gaussian",
    "Joint",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "StudentT",
    "Symbols",
    "discrete_log_prob",
    "inverse_tril",
    "log_prob",
    "masked_covariance",
    "observation_log_prob",
    "sample",
    "softplus",
    "weight_dtype",
]
