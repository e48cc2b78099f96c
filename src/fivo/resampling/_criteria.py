"""When to resample: functions of the normalised log-weights and the step, counted from 0."""

import operator
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fivo.errors import InputError
from fivo.weights import effective_sample_size


@runtime_checkable
class Criterion(Protocol):
    """Decides after weighting at step t whether particles are resampled before step t + 1.

    Any function of normalised log-weights [particle] and the step, counted from 0, that returns a boolean.
    """

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        """Decide whether to resample after step t.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        ...


def check_criterion(criterion: Criterion, num_particles: int) -> None:
    """Refuse anything that does not decide when to resample, such as a class in place of an instance.

    Args:
        criterion: a criterion of this package, or a function of (log_weights, step).
        num_particles: N.
    """
    if isinstance(criterion, type):
        raise InputError(f"criterion must be an instance, such as {criterion.__name__}(), got the class itself.")
    if type(criterion).__module__.startswith("fivo.resampling."):
        return
    if not callable(criterion):
        raise InputError(
            f"criterion must be a function of (log_weights, step), such as ESSBelow(0.5), got {criterion!r:.60}."
        )
    try:
        decided = jax.eval_shape(
            criterion, jax.ShapeDtypeStruct((num_particles,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
        )
    except TypeError as error:
        raise InputError(
            f"criterion must be a function of (log_weights, step), such as ESSBelow(0.5), but it raised: "
            f"{str(error).partition(chr(10))[0]:.120}."
        ) from error
    if getattr(decided, "shape", None) != () or decided.dtype != bool:
        raise InputError(f"criterion must return one boolean, got {decided!r:.80}.")


class Never(eqx.Module):
    """Sequential importance sampling: FIVO without resampling is IWAE."""

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        """False at every step.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        return jnp.zeros((), bool)


class Always(eqx.Module):
    """Resample at every step."""

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        """True at every step.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        return jnp.ones((), bool)


class ESSBelow(eqx.Module):
    """Resample if ESS <= fraction * N.

    Args:
        fraction: of the number of particles, from 0 to 1; the paper's choice is one half.
    """

    fraction: float = eqx.field(static=True, default=0.5)

    def __check_init__(self) -> None:
        if not isinstance(self.fraction, Real) or not 0 <= self.fraction <= 1:
            raise InputError(f"ESSBelow must be given a fraction of N from 0 to 1, got {self.fraction!r:.60}.")

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        # Where half the particles are dead and the others equal, ESS is N/2 up to rounding.
        """Whether ESS <= fraction * N.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        rounding = 32 * jnp.finfo(log_weights.dtype).eps
        return effective_sample_size(log_weights) <= self.fraction * log_weights.shape[-1] * (1 + rounding)


class Every(eqx.Module):
    """Resample after every k-th step.

    Args:
        k: the number of steps from one resampling to the next.
    """

    k: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not isinstance(self.k, Integral) or self.k < 1:
            raise InputError(f"Every must be given a positive number of steps, got {self.k!r:.60}.")

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether t + 1 is a multiple of k.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        return (step + 1) % self.k == 0


def _whole_numbers(steps: Any) -> tuple[int, ...]:
    try:
        chosen = tuple(operator.index(step) for step in steps)
    except TypeError:
        chosen = (-1,)
    if any(step < 0 for step in chosen):
        raise InputError(f"Schedule must be given steps, whole numbers counted from 0, got {steps!r:.60}.")
    return chosen


class Schedule(eqx.Module):
    """Resample after given steps: a fixed schedule, for which the score term of the gradient is unbiased.

    Args:
        steps: counted from 0.
    """

    steps: tuple[int, ...] = eqx.field(static=True, converter=_whole_numbers)

    def __call__(self, log_weights: Float[Array, " particle"], step: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether t is one of the chosen steps.

        Args:
            log_weights: normalised log-weights [particle].
            step: the step t, counted from 0.

        Returns:
            Whether to resample, a boolean scalar.
        """
        return jnp.any(step == jnp.asarray(self.steps, step.dtype))
