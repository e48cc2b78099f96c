"""A bound's estimates for every sequence of a split, the same for any evaluation batch size."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, Key, Shaped
from numpy.typing import DTypeLike

from fivo.batch import Batch
from fivo.bounds import Bound
from fivo.data import Slots, Split, evaluation_chunks, pad
from fivo.data.buckets import MAX_BUCKETS, best_buckets, bucket_of
from fivo.devices.mesh import from_rows, mapped, replicated, rows_here
from fivo.errors import InputError
from fivo.models import SequenceModel

CPU_OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 2}
"""Compiles in two thirds of the time that the default takes, to programs that are as fast."""
SLOTS = 1024
"""Particles of all sequences of a chunk together: bounds the memory at any N and length."""
COMPILATION = 2**21
"""Particle-steps that take about as long as compiling a program for one more shape."""

Lengths = Shaped[np.ndarray, " sequence"]


def scoring_plan(
    lengths: Lengths,
    num_particles: int,
    *,
    passes: int = 1,
    batch_size: int | None = None,
    mesh: Mesh | None = None,
) -> list[Slots]:
    """Chunks of sequences that share a shape; `batch_size` at once, by default as many as memory allows.

    Pads to the few lengths that make `passes` over the sequences cheapest, compilation included: small splits have
    one shape, large ones many. What a sequence is padded to does not depend on the batch size. Over the
    devices of a mesh, a chunk has as many slots on each.
    """
    choices = {best_buckets(lengths, count) for count in range(1, MAX_BUCKETS + 1)}

    def cost(buckets: tuple[int, ...]) -> float:
        padded = np.asarray(buckets)[bucket_of(lengths, buckets)].sum()
        return float(padded) * num_particles * passes + len(buckets) * COMPILATION

    chunk = max(1, SLOTS // num_particles) if batch_size is None else batch_size
    return evaluation_chunks(lengths, chunk, min(choices, key=cost), multiple=1 if mesh is None else mesh.size)


def score(
    model: SequenceModel,
    bound: Bound,
    sequences: Sequence[np.ndarray],
    plan: Sequence[Slots],
    *,
    key: Key[Array, ""],
    progress: Callable[[int], None] = lambda done: None,
    mesh: Mesh | None = None,
) -> Float[np.ndarray, " sequence"]:
    """log p̂ of every sequence; the i-th draws from the i-th key, so chunks and padding change nothing but rounding.

    Of a `Split` whose sequences begin with context, it is that of the steps after it, given the context. With a mesh,
    devices share out the sequences of each chunk.
    """
    model, bound = replicated(mesh, (model, bound))
    keys = jax.random.split(key, len(sequences))
    starts = None if not isinstance(sequences, Split) or sequences.starts is None else np.asarray(sequences.starts)
    values = np.zeros(len(sequences))
    done = 0
    for indices, padded_length in plan:
        batch = device_batch(sequences, indices, padded_length, weights_dtype(model), mesh)
        chosen = np.maximum(indices, 0)
        first = None if starts is None else jnp.asarray(starts[chosen], jnp.int32)
        log_evidence = _compiled(mesh)((bound, model), batch, *replicated(mesh, (keys[chosen], first)))
        real = indices >= 0
        values[indices[real]] = np.asarray(log_evidence)[real]
        done += int(real.sum())
        progress(done)
    return values


def nats_per_step(values: Float[np.ndarray, " sequence"], lengths: Lengths) -> float:
    """Sum of log p̂ over the split by the sum of lengths: the paper's convention, not the mean of ratios."""
    return float(np.sum(values) / np.sum(lengths))


def device_batch(
    sequences: Sequence[np.ndarray],
    indices: np.ndarray,
    padded_length: int,
    dtype: DTypeLike = np.float32,
    mesh: Mesh | None = None,
) -> Batch:
    """The chosen sequences as a batch on the device, with the masks and inputs of a `Split`; -1 is an empty slot.

    With a mesh, they are spread over its devices, and each process reads only those on its own devices.
    """
    count, indices = len(indices), indices[rows_here(mesh, len(indices))]
    observations, lengths = pad(sequences, indices, padded_length, dtype)
    split = sequences if isinstance(sequences, Split) else Split(tuple(sequences))
    placed = jnp.asarray if mesh is None else lambda rows: from_rows(mesh, rows, count)
    return Batch(
        placed(observations),
        placed(np.asarray(lengths, np.int32)),
        None if split.masks is None else placed(pad(split.masks, indices, padded_length, np.bool_)[0]),
        None if split.inputs is None else placed(pad(split.inputs, indices, padded_length, dtype)[0]),
    )


def weights_dtype(model: SequenceModel) -> np.dtype:
    """What a model computes in: the type of its first array of weights, by default single precision."""
    weights = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return np.dtype(weights[0].dtype if weights else np.float32)


def evidence_of(result: Any, num_sequences: int) -> Float[Array, " batch"]:
    """log p̂ of every sequence, from a `BoundResult` or from a bound that returns nothing else."""
    log_evidence = getattr(result, "log_evidence", result)
    if getattr(log_evidence, "shape", None) != (num_sequences,):
        shape = getattr(log_evidence, "shape", None)
        got = type(log_evidence).__name__ if shape is None else f"an array of shape {shape}"
        raise InputError(
            f"a bound must return a BoundResult or log p̂ of shape ({num_sequences},), one number for each sequence, "
            f"got {got}."
        )
    return log_evidence


def takes_many_keys(bound: Bound) -> bool:
    """Whether a bound takes a key for every sequence, as ours do."""
    return type(bound).__module__.partition(".")[0] == "fivo"


def _score(
    objects: tuple[Bound, SequenceModel],
    batch: Batch,
    keys: Key[Array, " batch"],
    starts: Int[Array, " batch"] | None,
) -> Float[Array, " batch"]:
    bound, model = objects
    whole = _evidence(bound, model, batch, keys)
    if starts is None:
        return whole
    # With the same keys, what a bound draws for the context cancels. Not all bounds are sums of increments.
    return whole - _evidence(bound, model, eqx.tree_at(lambda b: b.lengths, batch, starts), keys)


def _evidence(bound: Bound, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"]) -> Float[Array, " batch"]:
    if takes_many_keys(bound):
        return evidence_of(bound(model, batch, key=keys), batch.lengths.shape[0])

    def alone(sequence: Batch, key: Key[Array, ""]) -> Float[Array, ""]:
        """One sequence as a batch with one key, as a bound of the user's is trained with."""
        return evidence_of(bound(model, jax.tree.map(lambda leaf: leaf[None], sequence), key=key), 1)[0]

    return jax.vmap(alone)(batch, keys)


@cache
def _compiled(mesh: Mesh | None) -> Callable[..., Float[Array, " batch"]]:
    """Made at first use: importing a library must not choose a device."""
    options: dict[str, Any] = {"compiler_options": compiler_options()}
    if mesh is None:
        return eqx.filter_jit(_score, **options)
    everywhere = NamedSharding(mesh, P())  # so that every process can read it
    gathered = lambda *given: jax.lax.with_sharding_constraint(mapped(_score, mesh)(*given), everywhere)  # noqa: E731
    return eqx.filter_jit(gathered, **options)


def compiler_options() -> dict[str, Any] | None:
    """Options for `jax.jit`; what XLA_FLAGS say has the last word."""
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.default_backend() != "cpu" or any(option in flags for option in CPU_OPTIONS):
        return None
    return CPU_OPTIONS
