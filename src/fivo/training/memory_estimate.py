"""What training takes at least, compared with the memory there is: before anything is allocated, not after a crash."""

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import equinox as eqx
import jax

from fivo._building import build_emission, model_with
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.settings import ELBO, Networks, Settings, flattened, make_settings

COPIES = 5
"""Of the parameters: the model's own, those trained, their gradient, and two moments of Adam."""
UNITS, ENTRIES = 20, 2
"""Numbers that a step keeps for every particle and timestep: for each unit, and for each entry of a frame. XLA's own
count is 26 to 52 for a unit and 3 to 8 for an entry: what fits is never refused."""
FLOAT = 4
BLAMED = ("hidden", "particles", "batch_size")
MEMORY_GROUP = ("memory.max", "memory.current", "file", "shmem")
OLDER_MEMORY_GROUP = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem")


def check_memory(settings: Settings, dataset: Dataset) -> None:
    """Refuse settings of a model that cannot fit; names the one that would save most if it were smaller."""
    available = available_memory()
    needed = estimate_memory(settings, dataset)
    if available is None or needed <= available:
        return
    blamed = [name for name in BLAMED if name != "particles" or settings.particles is not None]
    smaller = {name: estimate_memory(make_settings({name: 1}, settings), dataset) for name in blamed}
    name = min(smaller, key=smaller.__getitem__)
    raise InputError(
        f"training with {name}={flattened(settings)[name]} takes at least {shown(needed)} of memory, but only "
        f"{shown(available)} is available; use a smaller --{name.replace('_', '-')}."
    )


def estimate_memory(settings: Settings, dataset: Dataset) -> int:
    """Bytes of the model, the optimizer and one step, estimated from below; nothing is allocated."""
    if not isinstance(settings.model, Networks):
        return 0
    emission, inputs = build_emission(dataset), len(dataset.input_columns)
    model = eqx.filter_eval_shape(
        lambda key: model_with(emission, settings, num_inputs=inputs, key=key), jax.random.key(0)
    )
    leaves = (leaf for leaf in jax.tree.leaves(model) if hasattr(leaf, "shape"))
    parameters = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
    longest = int(dataset.lengths("train").max())
    observed = settings.sequences_per_step * longest * dataset.dimension
    # The gradient of the ELBO may be summed over batches that are as small as this.
    samples = 1 if isinstance(settings.bound, ELBO) else settings.particles or 1
    units = UNITS * getattr(settings.model, "hidden", 0) + ENTRIES * dataset.dimension
    kept = settings.training.batch_size * samples * longest * units
    return COPIES * parameters + FLOAT * (observed + kept)


def available_memory() -> int | None:
    """Bytes that this process can still allocate; None if unknown."""
    device = jax.local_devices()[0].memory_stats()
    if device and "bytes_limit" in device:
        return device["bytes_limit"] - device.get("bytes_in_use", 0)
    known = [_system(), _address_space()]
    with suppress(OSError):  # only Linux has it
        known.append(cgroup_limit(Path("/proc/self/cgroup").read_text()))
    return min((limit for limit in known if limit is not None), default=None)


def cgroup_limit(groups: str, root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes left in the tightest of this process's groups, which is how containers are limited.

    Args:
        groups: what `/proc/self/cgroup` says.
        root: where the groups are mounted.
    """
    left = [bytes_left for line in groups.splitlines() for bytes_left in _left_in_groups(line, root)]
    return min(left, default=None)


def shown(size: int | float) -> str:
    """Bytes for a person."""
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(max(int(math.log10(max(size, 1)) // 3), 0), len(units) - 1)
    value = size / 1000**power
    return f"{value:.1f} {units[power]}" if value < 10 and power else f"{value:,.0f} {units[power]}"


def _left_in_groups(line: str, root: Path) -> Iterator[int]:
    _, controllers, path = line.split(":", 2)
    if controllers not in ("", "memory"):
        return
    names, top = (OLDER_MEMORY_GROUP, root / "memory") if controllers else (MEMORY_GROUP, root)
    limit_name, usage_name, *pages = names
    group = top / path.lstrip("/")
    for folder in (group, *group.parents):
        if folder != top and top not in folder.parents:
            return
        try:
            limit, usage = (int((folder / name).read_text()) for name in (limit_name, usage_name))
            counts = dict(entry.split() for entry in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no limit here
            continue
        # Pages of files are given back when memory is short, unless they are shared memory.
        file, shared = (int(counts.get(name, 0)) for name in pages)
        yield limit - usage + file - shared


def _system() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return None
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return 1024 * (kilobytes.get("MemAvailable", kilobytes["MemTotal"]) + kilobytes.get("SwapFree", 0))


def _address_space() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return max(limit - used, 0)
