"""The log-likelihood itself, of models that know theirs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from fivo.batch import as_batch
from fivo.bounds._result import BoundInfo, BoundResult
from fivo.errors import InputError
from fivo.models import SequenceModel


class Exact(eqx.Module):
    """log p(x) of models with a method `log_evidence(batch)`, such as `LinearGaussian`: no bound, and no noise.

    It is called like a bound, so that such models train like all others. The `info` has one step, in which nothing is
    resampled.
    """

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """log p(x) of every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: not used.

        Returns:
            One draw per sequence, and what happened along time.
        """
        self.check(model)
        log_evidence = model.log_evidence(as_batch(batch))  # pyright: ignore[reportAttributeAccessIssue]
        ones = jnp.ones_like(log_evidence)[:, None]
        info = BoundInfo(log_evidence[:, None], ones, jnp.zeros(ones.shape, bool), 0 * ones)
        return BoundResult(log_evidence, info)

    @staticmethod
    def check(model: SequenceModel) -> None:
        """Refuse a model that does not know its likelihood.

        Args:
            model: the model.
        """
        if not hasattr(model, "log_evidence"):
            raise InputError(
                f"{type(model).__name__} must have a method log_evidence(batch) to be trained on its exact likelihood; "
                "use FIVO."
            )
