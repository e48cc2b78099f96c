"""What a training step changes: named groups of parameters, their optimizers' states, and an average."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from fivo.bounds import Bound
from fivo.errors import InputError
from fivo.models import SequenceModel

MAIN = "objective"
"""The parameters that ascend the bound: the model's and the bound's own, without those of further updates."""


@dataclass(frozen=True)
class Update:
    """An additional loss, with its own parameters, optimizer, data and random numbers.

    It is part of the same step and the same checkpoints: a run with updates resumes to the same bits, like any other.

    Args:
        name: Names the group of parameters and their optimizer's state.
        where: The part of the model it trains, as for `equinox.tree_at`: `lambda model: model.twist`. These parameters
            no longer follow the bound.
        loss: `loss(model, data, *, key)`, a scalar to go down.
        optimizer: An optax transformation.
        data: `data(model, batch, *, key)` makes what the loss is computed on, say trajectories simulated from the
            model, without a derivative; by default it is the step's batch.
        repeats: Times that it is done after each step of the bound.
    """

    name: str
    where: Callable[[Any], Any]
    loss: Callable[..., Float[Array, ""]]
    optimizer: optax.GradientTransformation
    data: Callable[..., Any] = lambda model, batch, *, key: batch
    repeats: int = 1

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name == MAIN:
            raise InputError(f"an update's name must be an identifier other than {MAIN!r}, got {self.name!r:.60}.")
        if self.repeats < 1:
            raise InputError(f"an update's repeats must be at least 1, got {self.repeats}.")

    def mask(self, model: SequenceModel) -> PyTree:
        """Which parameters the update trains.

        Args:
            model: The model, or its trained part.

        Returns:
            A tree like the model's, true at those parameters.
        """
        nowhere = jax.tree.map(lambda _: False, model)
        return eqx.tree_at(self.where, nowhere, replace_fn=lambda part: jax.tree.map(lambda _: True, part))


class TrainState(NamedTuple):
    """What a step changes: plain pytrees of arrays."""

    parameters: dict[str, PyTree]
    """By group: `objective` has a `model` and a `bound`, and every further update has a part of the model."""
    optimizers: dict[str, PyTree]
    memory: PyTree = None
    """Arrays that the bound learns without a gradient: a moving average among its settings; mostly none."""
    average: "Average | None" = None
    """The moving average of the model's parameters, if one is kept."""


class Average(NamedTuple):
    """A moving average of parameters."""

    steps: Float[Array, ""]
    parameters: PyTree

    def after(self, parameters: PyTree, decay: float) -> "Average":
        """The average after one more step; it forgets faster at first, and so forgets where it began."""
        steps = self.steps + 1
        decayed = jnp.minimum(decay, (1 + steps) / (10 + steps))

        def mixed(old: Array, new: Array) -> Array:
            share = decayed.astype(new.dtype)
            return share * old + (1 - share) * new

        return Average(steps, jax.tree.map(mixed, self.parameters, parameters))


def whole_model(groups: dict[str, PyTree]) -> PyTree:
    """The model's parameters from all groups."""
    return eqx.combine(groups[MAIN]["model"], *(group for name, group in groups.items() if name != MAIN))


def trainable(model: SequenceModel) -> PyTree:
    """The float arrays of a model; statistics of the data are constants, and not among them."""
    return eqx.filter(model, eqx.is_inexact_array)


def trained_of(bound: Bound) -> PyTree:
    """The float arrays of a bound that its derivative trains: temperatures, proposals, gates, but no baselines."""
    return eqx.filter(bound, _trained_mask(bound)) if isinstance(bound, eqx.Module) else None


def remembered_of(bound: Bound) -> PyTree:
    """The other arrays of a bound, such as a moving average of its baseline, which a step may change all the same."""
    if not isinstance(bound, eqx.Module):
        return None
    return eqx.filter(eqx.filter(bound, _trained_mask(bound), inverse=True), eqx.is_array)


def _trained_mask(bound: eqx.Module) -> PyTree:
    mask = jax.tree.map(eqx.is_inexact_array, bound)
    if not hasattr(bound, "gradient"):
        return mask
    return eqx.tree_at(lambda b: b.gradient, mask, replace_fn=lambda part: jax.tree.map(lambda _: False, part))


def strong_copy(leaf: Array) -> Array:
    """A copy whose type is not weak: a step returns strong types, and would be compiled again for them."""
    return jnp.array(leaf, leaf.dtype)


def with_parameters(model: SequenceModel, parameters: PyTree) -> SequenceModel:
    """The model with other float arrays."""
    return eqx.combine(parameters, model)
