"""How a bound is estimated: the filter's value, and a gradient's rules and terms for its derivative."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.gradients import Gradient, hold, slope_only, undifferentiable
from fivo.models import SequenceModel
from fivo.smc import FilterResult, ParticleFilter, sequence_keys

Result = TypeVar("Result", bound=eqx.Module)


def estimate(
    pf: ParticleFilter, gradient: Gradient, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]
) -> tuple[Float[Array, " batch"], FilterResult]:
    """log p̂ of every sequence, whose derivative is the gradient's, and the filter's run behind it."""
    copies = gradient.num_filters
    if copies > 1:
        batch, key = independent_copies(batch, key, copies)
    pilot = pf(hold(model), batch, key=key, keep=("log_weights",)) if gradient.pilot else None
    result = pf(model, batch, key=key, keep=gradient.keep, rules=gradient.rules(pilot, batch.lengths))
    log_evidence = result.log_evidence
    term = gradient.surrogate(pf, result, batch.lengths)
    if term is not None:
        log_evidence = log_evidence + slope_only(term)
    if result.discrete and gradient.follows_latents:
        log_evidence = undifferentiable(log_evidence, gradient.name)
    return first_copies(log_evidence, result, copies)


def independent_copies(batch: Batch, key: Key[Array, "*batch"], copies: int) -> tuple[Batch, Key[Array, " copies"]]:
    """Each sequence several times in a row, each copy with its own key."""
    keys = sequence_keys(key, batch.lengths.shape[0])
    keys = jax.vmap(lambda k: jax.random.split(k, copies))(keys).reshape(-1)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, copies, axis=0), batch), keys


def first_copies(
    log_evidence: Float[Array, " copies"], result: Result, copies: int
) -> tuple[Float[Array, " batch"], Result]:
    """The average estimate of a sequence's copies, and the run of the first of them."""
    if copies == 1:
        return log_evidence, result
    return log_evidence.reshape(-1, copies).mean(axis=1), jax.tree.map(lambda leaf: leaf[::copies], result)
