"""One pass over rows: what each was expected to be before it was seen, how likely it was, and the state after it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Key, PyTree

from fivo.batch import Batch, Sequence, as_batch, over_sequences
from fivo.devices.mesh import spread
from fivo.inference.rowfilters import NUM_SAMPLES, RowFilter, Rows, row_filter
from fivo.models import SequenceModel
from fivo.smc import ParticleFilter, sequence_keys


def filter_rows(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Any,
    *,
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9),
    num_samples: int = NUM_SAMPLES,
    key: Key[Array, "*batch"],
    mesh: Mesh | None = None,
) -> Rows:
    """Filter sequences row by row, predicting every row before it is seen.

    Args:
        pf: The filter.
        model: A model whose proposal reads no future frames; of a `LinearGaussian` the answer is exact.
        batch: A `Batch`, or what can be made one.
        quantiles: Which quantiles to return.
        num_samples: Draws of each prediction.
        key: One random key, or one for each sequence.
        mesh: Devices that share out the sequences, whose number must be a multiple of theirs.

    Returns:
        For every row its log-likelihood, prediction and surprise, and the latent state after it.
    """
    batch = as_batch(batch)
    keys = sequence_keys(key, batch.lengths.shape[0])
    return spread(_rows, mesh, row_filter(pf, model, quantiles=quantiles, num_samples=num_samples), batch, keys)


@eqx.filter_jit
def _rows(rows: RowFilter, batch: Batch, keys: Key[Array, " batch"]) -> Rows:
    def one(sequence: Sequence, key: Key[Array, ""]) -> Rows:
        active = jnp.arange(sequence.observations.shape[0]) < sequence.length

        def step(state: PyTree, now: tuple) -> tuple[PyTree, Rows]:
            x, mask, u, is_active = now
            following, made = rows.step(state, x, mask, u)
            made = jax.tree.map(lambda leaf: jnp.where(is_active, leaf, 0), made)
            return jax.tree.map(lambda new, old: _where(is_active, new, old), following, state), made

        inputs = (sequence.observations, sequence.mask, sequence.inputs, active)
        return lax.scan(step, rows.begin(key), inputs)[1]

    return over_sequences(one, batch, keys)


def _where(flag: Bool[Array, ""], new: Any, old: Any) -> Any:
    if jnp.issubdtype(jnp.asarray(new).dtype, jax.dtypes.prng_key):
        return old  # the key of a stream never changes
    return jnp.where(flag, new, old)
