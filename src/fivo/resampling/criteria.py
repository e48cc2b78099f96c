"""When to resample: functions of the normalised log-weights and the step, counted from 0."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fivo.errors import InputError
from fivo.weights import effective_sample_size


@runtime_checkable
class Criterion(Protocol):
    """Decides after weighting at step t whether particles are resampled before step t + 1."""

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]: ...


class Never(eqx.Module):
    """Sequential importance sampling: FIVO without resampling is IWAE."""

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.zeros((), bool)


class Always(eqx.Module):
    """Resample at every step."""

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.ones((), bool)


class ESSBelow(eqx.Module):
    """Resample iff ESS <= fraction * N; the paper's choice is one half."""

    fraction: float = eqx.field(static=True, default=0.5)

    def __check_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise InputError(f"got ESSBelow({self.fraction}) where a fraction of N from 0 to 1 was expected.")

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        # Where half the particles are dead and the others equal, ESS is N/2 up to rounding.
        rounding = 32 * jnp.finfo(log_weights.dtype).eps
        return effective_sample_size(log_weights) <= self.fraction * log_weights.shape[-1] * (1 + rounding)


class Every(eqx.Module):
    """Resample after every k-th step."""

    k: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"got Every({self.k}) where a number of steps of at least 1 was expected.")

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        return (step + 1) % self.k == 0


class Schedule(eqx.Module):
    """Resample after the given steps: a fixed schedule, for which the score term of the gradient is unbiased."""

    steps: tuple[int, ...] = eqx.field(static=True, converter=lambda steps: tuple(int(s) for s in steps))

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        return jnp.any(step == jnp.asarray(self.steps, step.dtype))
