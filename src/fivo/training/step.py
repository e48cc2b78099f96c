"""One optimizer step: the gradient of -mean(log p̂_b / T_b), summed over micro-batches, and Adam."""

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo.batch import Batch
from fivo.bounds import Bound, BoundResult, learned
from fivo.models import SequenceModel
from fivo.training.compiling import compiler_options


class Metrics(NamedTuple):
    """Averages over the sequences of a step, in nats per timestep where they are nats."""

    bound: Float[Array, ""]
    kl: Float[Array, ""]
    ess: Float[Array, ""]
    resampling_rate: Float[Array, ""]
    gradient_norm: Float[Array, ""]


class TrainState(NamedTuple):
    """What a step changes: plain pytrees of arrays."""

    parameters: PyTree
    optimizer: PyTree
    bound: PyTree = None
    """The arrays of the bound itself, which a moving average among its settings changes; mostly none."""


class Trainer:
    """The compiled training step of a model's structure, a bound and Adam; compiles once per batch shape.

    The buffers of the state given to a step are reused for the one it returns.
    """

    def __init__(self, model: SequenceModel, bound: Bound, learning_rate: float, *, weight_decay: float = 0.0) -> None:
        self.template = model
        self.bound = bound
        self.adam = optax.scale_by_adam()
        # An argument of the programs, not a constant in them: runs of other rates find them compiled.
        self.learning_rate = jnp.asarray(learning_rate, jnp.float32)
        self.weight_decay = weight_decay
        self.compilations = 0
        """Batch shapes that a gradient was compiled for."""
        self.compiling_seconds = 0.0
        options = compiler_options()
        self._whole_step = jax.jit(self._step, donate_argnums=0, compiler_options=options)
        self._accumulate = jax.jit(self._add_gradient, donate_argnums=1, compiler_options=options)
        self._update = jax.jit(self._apply, donate_argnums=0, compiler_options=options)
        self._nothing = jax.jit(nothing)

    def start(self) -> TrainState:
        """The state of the untrained model."""
        # Copies: a step reuses the buffers, and the model's own stay the caller's.
        parameters = jax.tree.map(strong_copy, trainable(self.template))
        bound = jax.tree.map(strong_copy, eqx.filter(self.bound, eqx.is_array))
        return TrainState(parameters, self.adam.init(parameters), bound)

    def model(self, state: TrainState) -> SequenceModel:
        """The model as trained so far."""
        return with_parameters(self.template, state.parameters)

    def __call__(self, state: TrainState, batches: Sequence[Batch], key: Key[Array, ""]) -> tuple[TrainState, Metrics]:
        """The state after one step over all micro-batches, which are of one size."""
        known, started = self.compilations, time.monotonic()
        outcome = self._take(state, batches, key)
        if self.compilations > known:
            self.compiling_seconds += time.monotonic() - started
        return outcome

    def _take(self, state: TrainState, batches: Sequence[Batch], key: Key[Array, ""]) -> tuple[TrainState, Metrics]:
        if len(batches) == 1:
            return self._whole_step(state, batches[0], key, self.learning_rate)
        total = self._nothing(state)
        for index, batch in enumerate(batches):
            total = self._accumulate((state.parameters, state.bound), total, batch, jax.random.fold_in(key, index))
        return self._update(state, total, len(batches), self.learning_rate)

    def _gradient(self, now: tuple[PyTree, PyTree], batch: Batch, key: Key[Array, ""]) -> "Outcome":
        self.compilations += 1  # runs when traced, which is once per shape
        parameters, bound = now[0], eqx.combine(now[1], self.bound)
        loss = partial(negative_bound, self.template, bound, batch, key)
        gradient, result = jax.grad(loss, has_aux=True)(parameters)
        return Outcome(gradient, summarise(result, batch), eqx.filter(learned(bound, result, batch), eqx.is_array))

    def _step(
        self, state: TrainState, batch: Batch, key: Key[Array, ""], learning_rate: Float[Array, ""]
    ) -> tuple[TrainState, Metrics]:
        return self._apply(state, self._gradient((state.parameters, state.bound), batch, key), 1, learning_rate)

    def _add_gradient(
        self, now: tuple[PyTree, PyTree], total: "Outcome", batch: Batch, key: Key[Array, ""]
    ) -> "Outcome":
        return jax.tree.map(jnp.add, total, self._gradient(now, batch, key))

    def _apply(
        self,
        state: TrainState,
        total: "Outcome",
        count: int | Int[Array, ""],
        learning_rate: Float[Array, ""],
    ) -> tuple[TrainState, Metrics]:
        gradient, metrics, bound = jax.tree.map(lambda leaf: leaf / count, total)
        metrics = metrics._replace(gradient_norm=optax.tree.norm(gradient))
        directions, optimizer = self.adam.update(gradient, state.optimizer)
        if self.weight_decay:
            directions = jax.tree.map(lambda d, leaf: d + self.weight_decay * leaf, directions, state.parameters)
        parameters = jax.tree.map(
            lambda leaf, direction: leaf - learning_rate.astype(leaf.dtype) * direction, state.parameters, directions
        )
        return TrainState(parameters, optimizer, bound), metrics


class Outcome(NamedTuple):
    """What a batch has to say: the gradient, metrics, and the bound's arrays for the next step."""

    gradient: PyTree
    metrics: Metrics
    bound: PyTree


def trainable(model: SequenceModel) -> PyTree:
    """The float arrays of a model; statistics of the data are constants, and not among them."""
    return eqx.filter(model, eqx.is_inexact_array)


def strong_copy(leaf: Array) -> Array:
    """A copy whose type is not weak: a step returns strong types, and would be compiled again for them."""
    return jnp.array(leaf, leaf.dtype)


def with_parameters(model: SequenceModel, parameters: PyTree) -> SequenceModel:
    """The model with other float arrays."""
    return eqx.combine(parameters, model)


def nothing(state: TrainState) -> Outcome:
    """What no batch has to say."""
    gradient, bound = jax.tree.map(jnp.zeros_like, (state.parameters, state.bound))
    return Outcome(gradient, Metrics(*(jnp.zeros(()) for _ in Metrics._fields)), bound)


def negative_bound(
    template: SequenceModel, bound: Bound, batch: Batch, key: Key[Array, ""], parameters: PyTree
) -> tuple[Float[Array, ""], BoundResult]:
    """-mean over the batch of (log p̂_b / T_b)."""
    result = bound(with_parameters(template, parameters), batch, key=key)
    return -jnp.mean(result.log_evidence / batch.lengths), result


def summarise(result: BoundResult, batch: Batch) -> Metrics:
    """What is logged of a batch; the gradient's norm is filled in once the whole gradient is known."""
    info, lengths = result.info, batch.lengths
    active = jnp.arange(info.ess.shape[1])[None, :] < lengths[:, None]

    def average(values: Float[Array, "batch time"]) -> Float[Array, ""]:
        return jnp.mean(jnp.sum(jnp.where(active, values, 0), axis=1) / lengths)

    return Metrics(
        bound=jnp.mean(result.log_evidence / lengths),
        kl=average(info.kl),
        ess=average(info.ess),
        resampling_rate=average(info.resampled.astype(info.ess.dtype)),
        gradient_norm=jnp.zeros((), info.ess.dtype),
    )
