"""One optimiser step: the gradient of -mean(log p̂_b / T_b), summed over micro-batches, and Adam."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Batch
from fivo.bounds import Bound, BoundResult
from fivo.models import SequenceModel


class Metrics(NamedTuple):
    """Averages over the sequences of a step, in nats per timestep where they are nats."""

    bound: Float[Array, ""]
    kl: Float[Array, ""]
    ess: Float[Array, ""]
    resampling_rate: Float[Array, ""]
    gradient_norm: Float[Array, ""]


class Trainer:
    """The compiled training step of a model's structure, a bound and an optimiser.

    Parameters and optimiser state are plain pytrees of arrays, given to a step and returned by it; their buffers
    are reused. Compiles once per batch shape.
    """

    def __init__(self, model: SequenceModel, bound: Bound, learning_rate: float) -> None:
        self.static = eqx.filter(model, eqx.is_inexact_array, inverse=True)
        self.bound = bound
        self.optimiser = optax.adam(learning_rate)
        self.compilations = 0
        self._whole_step = jax.jit(self._step, donate_argnums=(0, 1))
        self._accumulate = jax.jit(self._add_gradient, donate_argnums=(1,))
        self._update = jax.jit(self._apply, donate_argnums=(0, 1))
        self._nothing = jax.jit(lambda parameters: (jax.tree.map(jnp.zeros_like, parameters), Metrics(*[0.0] * 5)))

    def parameters(self, model: SequenceModel) -> PyTree:
        """The trainable arrays of a model."""
        return eqx.filter(model, eqx.is_inexact_array)

    def model(self, parameters: PyTree) -> SequenceModel:
        """The model with these parameters."""
        return eqx.combine(parameters, self.static)

    def __call__(
        self, parameters: PyTree, optimiser_state: PyTree, batches: Sequence[Batch], key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree, Metrics]:
        """New parameters and optimiser state after one step over all micro-batches."""
        if len(batches) == 1:
            return self._whole_step(parameters, optimiser_state, batches[0], key)
        total = self._nothing(parameters)
        for index, batch in enumerate(batches):
            total = self._accumulate(parameters, total, batch, jax.random.fold_in(key, index))
        return self._update(parameters, optimiser_state, total, len(batches))

    def _gradient(self, parameters: PyTree, batch: Batch, key: Key[Array, ""]) -> tuple[PyTree, Metrics]:
        self.compilations += 1
        loss = partial(negative_bound, self.static, self.bound, batch, key)
        gradient, result = jax.grad(loss, has_aux=True)(parameters)
        return gradient, summarise(result, batch)

    def _step(self, parameters: PyTree, optimiser_state: PyTree, batch: Batch, key: Key[Array, ""]):
        return self._apply(parameters, optimiser_state, self._gradient(parameters, batch, key), 1)

    def _add_gradient(self, parameters: PyTree, total: PyTree, batch: Batch, key: Key[Array, ""]):
        return jax.tree.map(jnp.add, total, self._gradient(parameters, batch, key))

    def _apply(self, parameters: PyTree, optimiser_state: PyTree, total: tuple[PyTree, Metrics], count):
        gradient, metrics = jax.tree.map(lambda leaf: leaf / count, total)
        updates, optimiser_state = self.optimiser.update(gradient, optimiser_state, parameters)
        metrics = metrics._replace(gradient_norm=optax.global_norm(gradient))
        return optax.apply_updates(parameters, updates), optimiser_state, metrics


def negative_bound(
    static: PyTree, bound: Bound, batch: Batch, key: Key[Array, ""], parameters: PyTree
) -> tuple[Float[Array, ""], BoundResult]:
    """-mean over the batch of (log p̂_b / T_b)."""
    result = bound(eqx.combine(parameters, static), batch, key=key)
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
