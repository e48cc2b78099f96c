"""Sequences over devices: a mesh, and functions that are computed for a part of the sequences on each device.

Nothing is exchanged while a function runs: every device has the whole model and some of the sequences. Devices may
belong to several processes, one on each host, that run the same program after `jax.distributed.initialize()`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, PyTree

from fivo.errors import InputError

AXIS = "data"
Result = TypeVar("Result")


def data_mesh(num_devices: int | None = None) -> Mesh:
    """A mesh of devices that share out the sequences of a batch, for `fivo.fit(..., mesh=...)`.

    Args:
        num_devices: How many devices; all there are by default. With several processes it must be all.

    Returns:
        The mesh, of one axis called "data".
    """
    devices = jax.devices()
    count = len(devices) if num_devices is None else num_devices
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"the number of devices must be a positive integer, got {num_devices!r:.60}.")
    if count > len(devices):
        kind = devices[0].platform.upper()
        hint = f"; on a CPU, XLA_FLAGS=--xla_force_host_platform_device_count={count} simulates them" * (kind == "CPU")
        raise InputError(f"the number of devices must be at most {len(devices)} ({kind}) here, got {count}{hint}.")
    if jax.process_count() > 1 and count != len(devices):
        raise InputError(
            f"{jax.process_count()} processes must use all {len(devices)} devices together, got {count}; leave the "
            "number out."
        )
    return Mesh(np.asarray(devices[:count]), (AXIS,), axis_types=(AxisType.Auto,))


def checked_mesh(mesh: Any) -> Mesh | None:
    """A user's mesh, of one axis whatever its name; None stays None."""
    if mesh is None:
        return None
    if not isinstance(mesh, Mesh) or len(mesh.axis_names) != 1:
        raise InputError(f"mesh must be a jax.sharding.Mesh of one axis, such as fivo.devices.data_mesh(), got {mesh}.")
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))


def check_divides(mesh: Mesh | None, count: int, what: str) -> None:
    """Refuse sequences that cannot be shared out evenly."""
    if mesh is not None and count % mesh.size:
        raise InputError(
            f"{what} must be a multiple of the {mesh.size} devices that share the sequences of a step, got {count}."
        )


def replicated(mesh: Mesh | None, tree: Result) -> Result:
    """A pytree whose arrays are on every device; without a mesh, the tree itself."""
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, P())

    def everywhere(leaf: Any) -> Any:
        if not eqx.is_array(leaf) or getattr(leaf, "sharding", None) == sharding:
            return leaf
        if jax.process_count() == 1:
            return jax.device_put(leaf, sharding)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(everywhere(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        value = np.asarray(leaf)
        return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])

    return jax.tree.map(everywhere, tree)


def rows_here(mesh: Mesh | None, count: int) -> slice | np.ndarray:
    """Which of `count` sequences the devices of this process have; all of them without a mesh."""
    if mesh is None or jax.process_count() == 1:
        return slice(None)
    sharding = NamedSharding(mesh, P(*mesh.axis_names))
    places = sharding.addressable_devices_indices_map((count,)).values()
    parts = {place[0].indices(count) for place in places if place is not None}
    return np.concatenate([np.arange(*part) for part in sorted(parts)])


def from_rows(mesh: Mesh, rows: np.ndarray, count: int) -> Array:
    """An array of `count` sequences over the devices of a mesh, from each process's own rows."""
    sharding = NamedSharding(mesh, P(*mesh.axis_names))
    return jax.make_array_from_process_local_data(sharding, rows, (count, *rows.shape[1:]))


def spread(function: Callable[..., Result], mesh: Mesh | None, shared: PyTree, *split: PyTree) -> Result:
    """`function(shared, *split)` with a part of the sequences on each device.

    Args:
        function: Returns arrays [sequence, ...]. Compiled once for a function, which must be hashable.
        mesh: The devices; None calls the function as it is.
        shared: What every device needs.
        split: Arrays [sequence, ...], as many as the mesh's devices share out evenly.
    """
    return function(shared, *split) if mesh is None else _spread(function, mesh, shared, split)


@eqx.filter_jit
def _spread(function: Callable[..., Result], mesh: Mesh, shared: PyTree, split: tuple) -> Result:
    return mapped(function, mesh)(shared, *split)


def mapped(function: Callable[..., Result], mesh: Mesh) -> Callable[..., Result]:
    """As `spread`, to be compiled by the caller."""

    def everywhere(shared: PyTree, *split: PyTree) -> Result:
        arrays, static = eqx.partition(shared, eqx.is_array)
        # Unchecked: loops of a user's model start from constants, which the check would take for a mistake.
        return jax.shard_map(
            lambda arrays, split: function(eqx.combine(arrays, static), *split),
            mesh=mesh,
            in_specs=(P(), P(*mesh.axis_names)),
            out_specs=P(*mesh.axis_names),
            check_vma=False,
        )(arrays, split)

    return everywhere
