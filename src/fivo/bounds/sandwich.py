"""The evidence between a lower and an upper bound, so that the gap of a bound is measured and not guessed."""

import equinox as eqx
from jax import random
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Batch
from fivo.models.contract import SequenceModel
from fivo.resampling import Criterion, ESSBelow, Scheme
from fivo.smc.conditional import conditional_filter
from fivo.smc.filter import filter


class Sandwich(eqx.Module):
    """One draw of both bounds per sequence: E[lower] <= log p(x) <= E[upper]."""

    lower: Float[Array, " batch"]
    upper: Float[Array, " batch"]


def sandwich(
    model: SequenceModel,
    batch: Batch,
    posterior: PyTree,
    *,
    num_particles: int,
    key: Key[Array, ""],
    resampling: str | Scheme = "multinomial",
    criterion: Criterion = ESSBelow(0.5),
) -> Sandwich:
    """Bounds from the filter (Algorithm 1) and from conditional SMC (Algorithm 2) around posterior trajectories.

    `posterior` [batch, time, ...] must be drawn from p(z | x). The latents that x was simulated with are such a draw,
    but one only: they bracket the evidence on average over simulated pairs (x, z), not for a single x.
    """
    lower_key, upper_key = random.split(key)
    settings = {"num_particles": num_particles, "resampling": resampling, "criterion": criterion, "keep": ()}
    lower = filter(model, batch, key=lower_key, **settings).log_evidence
    return Sandwich(lower, conditional_filter(model, batch, posterior, key=upper_key, **settings).log_evidence)
