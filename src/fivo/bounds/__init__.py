"""Monte Carlo objectives: lower bounds on log p(x) as thin settings of the one filter."""

from fivo.bounds.elbo import ELBO
from fivo.bounds.fivo import FIVO
from fivo.bounds.iwae import IWAE
from fivo.bounds.result import Bound, BoundInfo, BoundResult, learned

__all__ = ["ELBO", "FIVO", "IWAE", "Bound", "BoundInfo", "BoundResult", "learned"]
