"""What a bound returns."""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Key

from fivo.batch import Batch
from fivo.gradients import Gradient
from fivo.models import SequenceModel
from fivo.smc import FilterResult


class BoundInfo(eqx.Module):
    """Diagnostics of a bound; under `jit`, unused ones cost nothing.

    Args:
        log_increments: log p̂_t of every step [batch, time].
        ess: the effective sample size [batch, time].
        resampled: whether particles were resampled after each step [batch, time].
        kl: the average of log q_t - log p_t over the particles [batch, time].
    """

    log_increments: Float[Array, "batch time"]
    ess: Float[Array, "batch time"]
    resampled: Bool[Array, "batch time"]
    kl: Float[Array, "batch time"]


class BoundResult(eqx.Module):
    """One draw of log p̂_N(x_1:T) per sequence, whose expectation is the bound.

    Args:
        log_evidence: the draw of every sequence [batch].
        info: what happened along time.
    """

    log_evidence: Float[Array, " batch"]
    info: BoundInfo


@runtime_checkable
class Bound(Protocol):
    """A Monte Carlo objective: the log of an unbiased positive estimator of p(x) (Definition 1 of the paper).

    Any callable of this form can be trained with; those of this package are modules.
    """

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """One draw of the bound for every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.

        Returns:
            One draw per sequence, and what happened along time.
        """
        ...


def bound_info(result: FilterResult) -> BoundInfo:
    """The diagnostics of a filter's run."""
    return BoundInfo(result.log_increments, result.ess, result.resampled, result.kl)


def learned(bound: Bound, result: BoundResult, batch: Batch) -> Bound:
    """The bound for the next run: what its gradient's baseline learns from this one, if it learns anything.

    Args:
        bound: the bound.
        result: what it returned.
        batch: the sequences.

    Returns:
        The bound with what it has learned.
    """
    gradient = getattr(bound, "gradient", None)
    if not isinstance(gradient, Gradient):
        return bound
    following = gradient.learn(result.info.log_increments, batch.lengths)
    return bound if following is gradient else eqx.tree_at(lambda b: b.gradient, bound, following)
