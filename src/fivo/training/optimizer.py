"""Optimizers: Adam with its settings, or any optax transformation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from fivo.errors import InputError
from fivo.settings import Adam

TINY = 1e-9


class Optimizer(NamedTuple):
    """How parameters follow a gradient."""

    rule: optax.GradientTransformationExtraArgs
    """The optax transformation."""
    learning_rate: Callable[[int], float] = lambda step: 0.0
    """The rate of a step, counted from 0, which the rule is given as `learning_rate`. It is an argument of the compiled
    programs and no constant in them: runs of other rates find them compiled. Rules that bring their own ignore it."""


def adam(settings: Adam, steps: int) -> Optimizer:
    """Adam with decoupled weight decay, clipping, warm-up and schedule.

    Args:
        settings: The `[optimizer]` section of a run.
        steps: Length of the run, over which a cosine goes down to zero.

    Returns:
        The optimizer.
    """
    scaling = optax.scale_by_adam()

    def update(
        updates: PyTree, state: PyTree, params: PyTree = None, *, learning_rate: Float[Array, ""], **_: Any
    ) -> tuple[PyTree, PyTree]:
        if settings.clip:
            factor = jnp.minimum(1.0, settings.clip / (optax.tree.norm(updates) + TINY))
            updates = jax.tree.map(lambda leaf: leaf * factor.astype(leaf.dtype), updates)
        directions, state = scaling.update(updates, state)
        if settings.weight_decay:
            directions = jax.tree.map(lambda d, leaf: d + settings.weight_decay * leaf, directions, params)
        return jax.tree.map(lambda d: -learning_rate.astype(d.dtype) * d, directions), state

    def learning_rate(step: int) -> float:
        if step < settings.warmup:
            return settings.learning_rate * (step + 1) / settings.warmup
        if settings.schedule == "constant":
            return settings.learning_rate
        done = (step - settings.warmup) / (steps - settings.warmup)
        return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * done))

    return Optimizer(optax.GradientTransformationExtraArgs(scaling.init, update), learning_rate)  # pyright: ignore[reportArgumentType]


def own_optimizer(rule: Any) -> Optimizer:
    """Take a user's optax transformation.

    Args:
        rule: The transformation; anything else is refused.

    Returns:
        The optimizer.
    """
    if not isinstance(rule, optax.GradientTransformation):
        raise InputError(
            f"optimizer must be an optax transformation, such as optax.adam(3e-4), got {rule!r:.60}; or leave it out "
            "and give learning_rate, weight_decay, schedule, warmup and clip."
        )
    return Optimizer(optax.with_extra_args_support(rule))
