"""A bound's estimates for every sequence of a split, the same for any evaluation batch size."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Shaped

from fivo.batch import Batch
from fivo.bounds import Bound
from fivo.data import Slots, evaluation_chunks, pad
from fivo.data.buckets import MAX_BUCKETS, best_buckets, bucket_of
from fivo.models import SequenceModel

CPU_OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 2}
"""Compiles in two thirds of the time that the default takes, to programs that are as fast."""
SLOTS = 1024
"""Particles of all sequences of a chunk together: bounds the memory at any N and length."""
COMPILATION = 2**21
"""Particle-steps that take about as long as compiling a program for one more shape."""

Lengths = Shaped[np.ndarray, " sequence"]


def scoring_plan(
    lengths: Lengths, num_particles: int, *, passes: int = 1, batch_size: int | None = None
) -> list[Slots]:
    """Chunks of sequences that share a shape; `batch_size` at once, by default as many as memory allows.

    Pads to the few lengths that make `passes` over the sequences cheapest, compilation included: small splits have
    one shape, large ones many. What a sequence is padded to does not depend on the batch size.
    """
    choices = {best_buckets(lengths, count) for count in range(1, MAX_BUCKETS + 1)}

    def cost(buckets: tuple[int, ...]) -> float:
        padded = np.asarray(buckets)[bucket_of(lengths, buckets)].sum()
        return float(padded) * num_particles * passes + len(buckets) * COMPILATION

    chunk = max(1, SLOTS // num_particles) if batch_size is None else batch_size
    return evaluation_chunks(lengths, chunk, min(choices, key=cost))


def score(
    model: SequenceModel,
    bound: Bound,
    sequences: Sequence[np.ndarray],
    plan: Sequence[Slots],
    *,
    key: Key[Array, ""],
    progress: Callable[[int], None] = lambda done: None,
) -> Float[np.ndarray, " sequence"]:
    """log p̂ of every sequence; the i-th draws from the i-th key, so chunks and padding change nothing but rounding."""
    keys = jax.random.split(key, len(sequences))
    values = np.zeros(len(sequences))
    done = 0
    for indices, padded_length in plan:
        batch = device_batch(sequences, indices, padded_length)
        log_evidence = _compiled()(bound, model, batch, keys[np.maximum(indices, 0)])
        real = indices >= 0
        values[indices[real]] = np.asarray(log_evidence)[real]
        done += int(real.sum())
        progress(done)
    return values


def nats_per_step(values: Float[np.ndarray, " sequence"], lengths: Lengths) -> float:
    """Sum of log p̂ over the split by the sum of lengths: the paper's convention, not the mean of ratios."""
    return float(np.sum(values) / np.sum(lengths))


def device_batch(sequences: Sequence[np.ndarray], indices: np.ndarray, padded_length: int) -> Batch:
    """The chosen sequences as a batch on the device; index -1 is an empty slot."""
    observations, lengths = pad(sequences, indices, padded_length, np.float32)
    return Batch(jnp.asarray(observations), jnp.asarray(lengths, jnp.int32))


def evidence_of(result: Any) -> Float[Array, " batch"]:
    """log p̂ of every sequence, from a `BoundResult` or from a bound that returns nothing else."""
    return getattr(result, "log_evidence", result)


def _score(bound: Bound, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"]) -> Float[Array, " batch"]:
    if type(bound).__module__.partition(".")[0] == "fivo":  # ours take a key for every sequence
        return evidence_of(bound(model, batch, key=keys))

    def alone(sequence: Batch, key: Key[Array, ""]) -> Float[Array, ""]:
        """One sequence as a batch with one key, as a bound of the user's is trained with."""
        return evidence_of(bound(model, jax.tree.map(lambda leaf: leaf[None], sequence), key=key))[0]

    return jax.vmap(alone)(batch, keys)


@cache
def _compiled() -> Callable[[Bound, SequenceModel, Batch, Key[Array, " batch"]], Float[Array, " batch"]]:
    """Made at first use: importing a library must not choose a device."""
    return eqx.filter_jit(_score, compiler_options=compiler_options())  # pyright: ignore[reportCallIssue]


def compiler_options() -> dict[str, Any] | None:
    """Options for `jax.jit`; what XLA_FLAGS say has the last word."""
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.default_backend() != "cpu" or any(option in flags for option in CPU_OPTIONS):
        return None
    return CPU_OPTIONS
