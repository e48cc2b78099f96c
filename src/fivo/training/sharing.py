"""The gradient of a step whose sequences are shared out over devices."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Key, PyTree

from fivo._scoring import evidence_of, takes_many_keys
from fivo.batch import Batch
from fivo.bounds import Bound, BoundInfo, BoundResult
from fivo.smc import sequence_keys


def shared_gradient(
    mesh: Mesh,
    bound: Bound,
    estimate: Callable[[PyTree, PyTree, Batch, Key[Array, "*batch"]], Any],
    parameters: PyTree,
    others: PyTree,
    batch: Batch,
    key: Key[Array, ""],
) -> tuple[PyTree, Any]:
    """The gradient of -mean(log p̂_b / T_b), and the estimates of all sequences.

    Every device has all parameters and some of the sequences; gradients are summed once, after the last step of time.
    Each sequence draws from the key that it has without a mesh. A bound of the user's own takes one key for all
    sequences, so each device gives it one: what it draws depends on the number of devices.

    Args:
        mesh: The devices.
        bound: What is maximised.
        estimate: `estimate(parameters, others, batch, key)`, the bound's result.
        parameters: What to differentiate by.
        others: Arrays that the estimate needs besides them.
        batch: The sequences of the step, as many on each device.
        key: The key of the step.
    """
    (axis,) = mesh.axis_names
    count = batch.lengths.shape[0]
    many = takes_many_keys(bound)
    keys = sequence_keys(key, count) if many else jax.random.split(key, mesh.size)

    def share(parameters: PyTree, others: PyTree, batch: Batch, keys: Key[Array, " part"]) -> tuple[PyTree, Any]:
        def loss(parameters: PyTree) -> tuple[Float[Array, ""], Any]:
            result = estimate(parameters, others, batch, keys if many else keys[0])
            log_evidence = evidence_of(result, batch.lengths.shape[0])
            info = getattr(result, "info", None)
            kept = BoundResult(log_evidence, info) if isinstance(info, BoundInfo) else log_evidence
            return -jnp.sum(log_evidence / batch.lengths) / count, kept

        gradient, kept = jax.grad(loss, has_aux=True)(parameters)
        # As one vector: transports between hosts sum arrays one after the other, at a round trip each.
        flat, restore = ravel_pytree(gradient)
        return restore(lax.psum(flat, axis)), kept

    # Unchecked: loops of a user's model start from constants, which the check would take for a mistake.
    return jax.shard_map(
        share, mesh=mesh, in_specs=(P(), P(), P(axis), P(axis)), out_specs=(P(), P(axis)), check_vma=False
    )(parameters, others, batch, keys)
