"""Schedules 0 = β_1 < … < β_N+1 = 1 of inverse temperatures for annealing (Appendix of the paper)."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.smc import Kernel, ParticleFilter, anneal

PILOT_TEMPERATURES = 64
PILOT_PARTICLES = 64


class Temperatures(eqx.Module):
    """Where annealing goes from 0 to 1. Subclass it for a schedule of your own."""

    @abstractmethod
    def betas(self) -> Float[Array, " temperature"]:
        """The inverse temperatures along which the target is approached.

        Returns:
            Numbers that rise from 0 to 1 [temperature].
        """


class FixedTemperatures(Temperatures):
    """Given temperatures, which are not trained.

    Args:
        values: numbers that rise from 0 to 1.
    """

    values: tuple[float, ...] = eqx.field(static=True, converter=lambda values: tuple(float(v) for v in values))

    def __check_init__(self) -> None:
        steps = np.diff(self.values)
        if len(steps) < 1 or self.values[0] != 0 or self.values[-1] != 1 or not (steps >= 0).all():
            raise InputError(f"the temperatures must rise from 0 to 1, got {self.values}; try linear(8).")

    def betas(self) -> Float[Array, " temperature"]:
        return jnp.asarray(self.values)


class LearnedTemperatures(Temperatures):
    """Temperatures whose steps are a softmax of free numbers; equal steps to start with.

    Args:
        num_steps: the number of steps from 0 to 1.
    """

    logits: Float[Array, " step"]

    def __init__(self, num_steps: int) -> None:
        self.logits = jnp.zeros(_checked(num_steps))

    def betas(self) -> Float[Array, " temperature"]:
        inner = jnp.cumsum(jax.nn.softmax(self.logits))[:-1]
        ends = jnp.zeros((1,), inner.dtype)
        return jnp.concatenate([ends, inner, ends + 1])


def linear(num_steps: int) -> FixedTemperatures:
    """Equal steps from 0 to 1, `num_steps` of them."""
    return FixedTemperatures(tuple(np.linspace(0, 1, _checked(num_steps) + 1)))


def sigmoid(num_steps: int, sharpness: float = 4.0) -> FixedTemperatures:
    """Steps that are small at both ends: β from a sigmoid over [-sharpness, sharpness], scaled to [0, 1]."""
    if not sharpness > 0:
        raise InputError(f"sharpness must be a positive number, got {sharpness!r}.")
    rising = 1 / (1 + np.exp(-sharpness * np.linspace(-1, 1, _checked(num_steps) + 1)))
    values = (rising - rising[0]) / (rising[-1] - rising[0])
    values[-1] = 1.0
    return FixedTemperatures(tuple(values))


def adapted(
    model: SequenceModel, batch: Any, num_steps: int, kernel: Kernel, *, key: Key[Array, ""]
) -> FixedTemperatures:
    """Temperatures of a pilot run: equal steps in ∫ sd_β(log p - log q) dβ, so that every step varies equally.

    They are fixed once the pilot is over. As long as its key is not used again, estimates stay unbiased; temperatures
    chosen from the particles that are then weighted would not leave them so.
    """
    result = anneal(
        ParticleFilter(PILOT_PARTICLES),
        model,
        batch,
        betas=linear(PILOT_TEMPERATURES).betas(),
        kernel=kernel,
        key=key,
        keep=("log_weights", "latents"),
    )
    weights = np.exp(np.asarray(result.log_weights, np.float64))
    ratios = np.asarray(result.latents.log_ratio, np.float64)
    centred = ratios - np.sum(weights * ratios, axis=2, keepdims=True)
    speed = np.sqrt(np.mean(np.sum(weights * centred**2, axis=2), axis=0))
    if not np.isfinite(speed).all():
        raise InputError(
            "the pilot run met log-densities that are not finite; check the model, or use linear or sigmoid."
        )
    # A proposal that is already the posterior has no length to divide: steps are then equal.
    length = np.concatenate([[0], np.cumsum(speed + 1e-6 * (1 + speed.mean()))])
    values = np.interp(np.linspace(0, 1, _checked(num_steps) + 1), length / length[-1], np.linspace(0, 1, len(length)))
    values[0], values[-1] = 0.0, 1.0
    return FixedTemperatures(tuple(values))


def _checked(num_steps: int) -> int:
    if not isinstance(num_steps, int) or num_steps < 1:
        raise InputError(f"num_steps must be a positive integer, got {num_steps!r}.")
    return num_steps
