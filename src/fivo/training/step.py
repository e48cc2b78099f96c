"""One optimizer step: the gradient of -mean(log p̂_b / T_b), summed over micro-batches, and what an objective adds."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, Key, PyTree

from fivo._scoring import compiler_options, evidence_of
from fivo.batch import Batch
from fivo.bounds import Bound, BoundInfo, BoundResult, learned
from fivo.devices.mesh import replicated
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.training.groups import (
    MAIN,
    Average,
    TrainState,
    Update,
    remembered_of,
    strong_copy,
    trainable,
    trained_of,
    whole_model,
    with_parameters,
)
from fivo.training.optimizer import Optimizer
from fivo.training.sharing import shared_gradient

Metrics = dict[str, Float[Array, ""]]
"""Averages over the sequences of a step, in nats per timestep where they are nats."""
METRICS = ("bound", "kl", "ess", "resampling_rate", "gradient_norm")
"""The order in which they are written."""


class Trainer:
    """The compiled training step of a model's structure, a bound and an optimizer; compiles once per batch shape.

    The buffers of the state given to a step are reused for the one it returns.

    Args:
        model: The untrained model.
        bound: What is maximised. Float arrays in it are trained too, but for those of its `gradient`.
        optimizer: How the parameters follow.
        average: Decay of the moving average of the parameters; 0 keeps none.
        updates: Further losses.
        compiling: Called before a program is compiled for a new shape of batch.
        mesh: Devices that share out the sequences of a step, which then must come over them; the state is on each.
            Given the keys, estimates and gradients are those of one device; a bound of your own is given one key per
            device, and draws other numbers on other numbers of devices.
    """

    def __init__(
        self,
        model: SequenceModel,
        bound: Bound,
        optimizer: Optimizer,
        *,
        average: float = 0.0,
        updates: Sequence[Update] = (),
        compiling: Callable[[], None] = lambda: None,
        mesh: Mesh | None = None,
    ) -> None:
        self.template, self.bound, self.optimizer = model, bound, optimizer
        self.average_decay, self.updates = average, tuple(updates)
        self.compiling, self.mesh = compiling, mesh
        self.compilations = 0
        """Batch shapes that a gradient was compiled for."""
        self.compiling_seconds = 0.0
        self._shapes: set[Any] = set()
        self._masks = {update.name: update.mask(trainable(model)) for update in self.updates}
        if len(self._masks) < len(self.updates):
            raise InputError("every update must have a name of its own.")
        self._placed: dict[str, Any] = {} if mesh is None else {"out_shardings": NamedSharding(mesh, P())}
        options = {"compiler_options": compiler_options(), **self._placed}
        self._whole_step = jax.jit(self._step, donate_argnums=0, **options)
        self._accumulate = jax.jit(self._add_gradient, donate_argnums=1, **options)
        self._update = jax.jit(self._apply, donate_argnums=0, **options)
        self._nothing: Callable[[], Outcome] | None = None

    def start(self) -> TrainState:
        """The state before the first step.

        Returns:
            The parameters of the untrained model, and optimizers that have seen nothing.
        """
        # Copies: a step reuses the buffers, and the model's own stay the caller's.
        whole = jax.tree.map(strong_copy, trainable(self.template))
        groups: dict[str, PyTree] = {name: eqx.filter(whole, mask) for name, mask in self._masks.items()}
        rest = whole
        for mask in self._masks.values():
            rest = eqx.filter(rest, mask, inverse=True)
        groups[MAIN] = {"model": rest, "bound": jax.tree.map(strong_copy, trained_of(self.bound))}
        optimizers = {update.name: update.optimizer.init(groups[update.name]) for update in self.updates}
        optimizers[MAIN] = self.optimizer.rule.init(groups[MAIN])
        memory = jax.tree.map(strong_copy, remembered_of(self.bound))
        average = Average(jnp.zeros(()), jax.tree.map(jnp.copy, whole)) if self.average_decay else None
        return replicated(self.mesh, TrainState(groups, optimizers, memory, average))

    def parameters(self, state: TrainState) -> PyTree:
        """The model's parameters as trained so far.

        Args:
            state: The training state.

        Returns:
            Their average, where one is kept; else the parameters themselves.
        """
        return whole_model(state.parameters) if state.average is None else state.average.parameters

    def model(self, state: TrainState) -> SequenceModel:
        """The model as trained so far.

        Args:
            state: The training state.

        Returns:
            The model.
        """
        return with_parameters(self.template, self.parameters(state))

    def trained_bound(self, state: TrainState) -> Bound:
        """The bound with its parameters as trained so far.

        Args:
            state: The training state.

        Returns:
            The bound.
        """
        return eqx.combine(state.parameters[MAIN]["bound"], state.memory, self.bound)

    def __call__(
        self, state: TrainState, batches: Sequence[Batch], key: Key[Array, ""], step: int
    ) -> tuple[TrainState, Metrics]:
        """Take one step over all micro-batches, which are of one size.

        Args:
            state: The training state, whose buffers are reused.
            batches: The micro-batches.
            key: The random key of the step.
            step: Its number, from 0.

        Returns:
            The next state, and what was measured.
        """
        shapes = tuple(tuple(leaf.shape for leaf in jax.tree.leaves(batch)) for batch in batches[:1])
        if shapes not in self._shapes:
            self._shapes.add(shapes)
            self.compiling()
        known, started = self.compilations, time.monotonic()
        rate = jnp.asarray(self.optimizer.learning_rate(step), jnp.float32)
        outcome = self._take(state, batches, key, rate)
        if self.compilations > known:
            self.compiling_seconds += time.monotonic() - started
        return outcome

    def _take(
        self, state: TrainState, batches: Sequence[Batch], key: Key[Array, ""], rate: Float[Array, ""]
    ) -> tuple[TrainState, Metrics]:
        if len(batches) == 1:
            return self._whole_step(state, batches[0], key, rate)
        total = self._zeros(state, batches[0], key)
        for index, batch in enumerate(batches):
            total = self._accumulate((state.parameters, state.memory), total, batch, jax.random.fold_in(key, index))
        return self._update(state, total, len(batches), rate, batches[0] if self.updates else None, key)

    def _zeros(self, state: TrainState, batch: Batch, key: Key[Array, ""]) -> "Outcome":
        """What no batch has to say."""
        if self._nothing is None:
            known = self.compilations
            shapes = jax.eval_shape(self._gradient, (state.parameters, state.memory), batch, key)
            self.compilations = known
            self._nothing = jax.jit(
                lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes), **self._placed
            )
        return self._nothing()

    def _gradient(self, now: tuple[PyTree, PyTree], batch: Batch, key: Key[Array, ""]) -> "Outcome":
        self.compilations += 1  # runs when traced, which is once per shape
        groups, memory = now
        others = {name: group for name, group in groups.items() if name != MAIN}

        def estimate(main: PyTree, rest: tuple[PyTree, PyTree], batch: Batch, key: Key[Array, "*batch"]) -> Any:
            others, memory = rest
            model = with_parameters(self.template, whole_model({**others, MAIN: main}))
            return eqx.combine(main["bound"], memory, self.bound)(model, batch, key=key)

        def following(main: PyTree, result: Any) -> PyTree:
            bound = eqx.combine(main["bound"], memory, self.bound)
            return remembered_of(learned(bound, result, batch) if isinstance(result, BoundResult) else bound)

        def loss(main: PyTree) -> tuple[Float[Array, ""], tuple[Metrics, PyTree]]:
            result = estimate(main, (others, memory), batch, key)
            remembered = following(main, result)
            return -jnp.mean(evidence_of(result, batch.lengths.shape[0]) / batch.lengths), (
                summarise(result, batch),
                remembered,
            )

        main = groups[MAIN]
        if self.mesh is not None:
            gradient, result = shared_gradient(self.mesh, self.bound, estimate, main, (others, memory), batch, key)
            return Outcome(gradient, summarise(result, batch), following(main, result))
        gradient, (metrics, remembered) = jax.grad(loss, has_aux=True)(main)
        return Outcome(gradient, metrics, remembered)

    def _step(
        self, state: TrainState, batch: Batch, key: Key[Array, ""], rate: Float[Array, ""]
    ) -> tuple[TrainState, Metrics]:
        return self._apply(state, self._gradient((state.parameters, state.memory), batch, key), 1, rate, batch, key)

    def _add_gradient(
        self, now: tuple[PyTree, PyTree], total: "Outcome", batch: Batch, key: Key[Array, ""]
    ) -> "Outcome":
        return jax.tree.map(jnp.add, total, self._gradient(now, batch, key))

    def _apply(
        self,
        state: TrainState,
        total: "Outcome",
        count: int | Int[Array, ""],
        rate: Float[Array, ""],
        batch: Batch | None,
        key: Key[Array, ""],
    ) -> tuple[TrainState, Metrics]:
        gradient, metrics, memory = jax.tree.map(lambda leaf: leaf / count, total)
        metrics = metrics | {"gradient_norm": optax.tree.norm(gradient)}
        main = state.parameters[MAIN]
        changes, optimizer = self.optimizer.rule.update(gradient, state.optimizers[MAIN], main, learning_rate=rate)
        groups = {**state.parameters, MAIN: optax.apply_updates(main, changes)}
        optimizers = {**state.optimizers, MAIN: optimizer}
        for number, update in enumerate(self.updates):
            value = self._descend(update, groups, optimizers, batch, jax.random.fold_in(key, 1 + number))
            metrics[f"{update.name}_loss"] = value
        average = state.average
        if average is not None:
            average = average.after(whole_model(groups), self.average_decay)
        return TrainState(groups, optimizers, memory, average), metrics

    def _descend(
        self,
        update: Update,
        groups: dict[str, PyTree],
        optimizers: dict[str, PyTree],
        batch: Batch | None,
        key: Key[Array, ""],
    ) -> Float[Array, ""]:
        """Take an update's steps, in place; returns the last loss."""
        if self.mesh is not None:  # every device takes the same steps, on all sequences
            batch = jax.lax.with_sharding_constraint(batch, NamedSharding(self.mesh, P()))
        value = jnp.zeros(())
        for repeat in range(update.repeats):
            data_key, loss_key = jax.random.split(jax.random.fold_in(key, repeat))
            model = with_parameters(self.template, whole_model(groups))
            data = jax.lax.stop_gradient(update.data(model, batch, key=data_key))
            mine = groups[update.name]

            def loss(group: PyTree, data: Any = data, loss_key: Any = loss_key) -> Float[Array, ""]:
                model = with_parameters(self.template, whole_model({**groups, update.name: group}))
                return update.loss(model, data, key=loss_key)

            value, gradient = jax.value_and_grad(loss)(mine)
            changes, optimizers[update.name] = update.optimizer.update(gradient, optimizers[update.name], mine)
            groups[update.name] = optax.apply_updates(mine, changes)
        return value


class Outcome(NamedTuple):
    """What a batch has to say: the gradient, metrics, and what the bound remembers for the next step."""

    gradient: PyTree
    metrics: Metrics
    memory: PyTree


def summarise(result: Any, batch: Batch) -> Metrics:
    """What is logged of a batch: the bound and, of bounds that say more, what happened along time."""
    lengths = batch.lengths
    info = getattr(result, "info", None)
    metrics = {"bound": jnp.mean(evidence_of(result, lengths.shape[0]) / lengths)}
    if not isinstance(info, BoundInfo):
        return metrics
    steps = info.ess.shape[1]
    # Along temperatures, or with one entry for a whole trajectory, all of them count.
    counted = lengths if steps == batch.observations.shape[1] else jnp.full_like(lengths, steps)
    active = jnp.arange(steps)[None, :] < counted[:, None]

    def average(values: Float[Array, "batch time"]) -> Float[Array, ""]:
        return jnp.mean(jnp.sum(jnp.where(active, values, 0), axis=1) / counted)

    return metrics | {
        "kl": average(info.kl),
        "ess": average(info.ess),
        "resampling_rate": average(info.resampled.astype(info.ess.dtype)),
    }
