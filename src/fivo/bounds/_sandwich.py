"""The evidence between a lower and an upper bound, so that the gap of a bound is measured and not guessed."""

from typing import Any

import equinox as eqx
from jax import random
from jaxtyping import Array, Float, Key, PyTree

from fivo.models import SequenceModel
from fivo.smc import ParticleFilter, check_filter, conditional_filter


class Sandwich(eqx.Module):
    """One draw of both bounds per sequence: E[lower] <= log p(x) <= E[upper].

    Args:
        lower: draws of the lower bound [batch].
        upper: draws of the upper bound [batch].
    """

    lower: Float[Array, " batch"]
    upper: Float[Array, " batch"]


def sandwich(
    pf: ParticleFilter, model: SequenceModel, batch: Any, posterior: PyTree, *, key: Key[Array, ""]
) -> Sandwich:
    """Bounds from the filter (Algorithm 1) and from conditional SMC (Algorithm 2) around posterior trajectories.

    Args:
        pf: the filter, whose scheme must have a conditional form.
        model: the model.
        batch: a `Batch`, or what can be made one.
        posterior: a draw from p(z | x) for each sequence, [batch, time, ...]. The latents that x was simulated with are
            such a draw, but one only: they bracket the evidence on average over simulated pairs (x, z), not for a
            single x.
        key: a random key.

    Returns:
        One draw of the lower and of the upper bound for each sequence.
    """
    check_filter(pf)
    lower_key, upper_key = random.split(key)
    lower = pf(model, batch, key=lower_key).log_evidence
    return Sandwich(lower, conditional_filter(pf, model, batch, posterior, key=upper_key).log_evidence)
