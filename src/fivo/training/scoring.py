"""A bound's estimates for every sequence of a split, the same for any evaluation batch size."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fivo.batch import Batch
from fivo.bounds import Bound, BoundResult
from fivo.data import Dataset, evaluation_chunks, pad
from fivo.models import SequenceModel


def score(
    model: SequenceModel,
    bound: Bound,
    dataset: Dataset,
    split: str,
    *,
    key: Key[Array, ""],
    chunk: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Float[np.ndarray, " sequence"]:
    """log p̂ of every sequence; sequence i draws from the i-th key, so chunks and padding change nothing but rounding."""
    sequences = dataset.splits[split]
    keys = jax.random.split(key, len(sequences))
    values = np.zeros(len(sequences))
    done = 0
    for indices, padded_length in evaluation_chunks(dataset.lengths(split), chunk):
        batch = device_batch(sequences, indices, padded_length)
        log_evidence = _score(bound, model, batch, keys[np.maximum(indices, 0)])
        real = indices >= 0
        values[indices[real]] = np.asarray(log_evidence)[real]
        done += int(real.sum())
        if progress is not None:
            progress(done, len(sequences))
    return values


def nats_per_step(values: Float[np.ndarray, " sequence"], dataset: Dataset, split: str) -> float:
    """Sum of log p̂ over the split by the sum of lengths: the paper's convention, not the mean of ratios."""
    return float(np.sum(values) / np.sum(dataset.lengths(split)))


def device_batch(sequences: Sequence[np.ndarray], indices: np.ndarray, padded_length: int) -> Batch:
    """The chosen sequences as a batch on the device; index -1 is an empty slot."""
    observations, lengths = pad(sequences, indices, padded_length, np.float32)
    return Batch(jnp.asarray(observations), jnp.asarray(lengths, jnp.int32))


@eqx.filter_jit
def _score(bound: Bound, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"]) -> Float[Array, " batch"]:
    result: BoundResult = bound(model, batch, key=keys)
    return result.log_evidence
