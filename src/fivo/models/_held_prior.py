"""Bootstrap draws that derivatives do not see."""

import jax
import numpyro.distributions as dist
from jaxtyping import PyTree

from fivo.models._proposals import Proposal


class HeldPrior(Proposal):
    """q_t = p_t, drawn as by a bootstrap filter, with a derivative of zero.

    With it and `gradient="stop-gradient"` the derivative of a bound is Fisher's identity: the mean of ∇ log p(x, z)
    over the paths of the final particles. None passes through the dynamics, along which paths of chaotic or spiking
    models fly apart. A filter with it trains p only.
    """

    def __call__(self, state: PyTree, evidence: PyTree, prior: dist.Distribution) -> dist.Distribution:
        return jax.tree.map(jax.lax.stop_gradient, prior)
