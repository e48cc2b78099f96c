"""Several processes that run the same program, one on each host: process 0 leads, decides and writes."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from fivo.devices.mesh import data_mesh, from_rows
from fivo.errors import InputError

GRACE = 24 * 3600
"""Seconds that JAX waits longer than we do: it ends the process when its time is over, before a sentence is said."""


def join_processes(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout: float = 300,
) -> None:
    """Join the processes that train or evaluate together, before anything else is computed; each runs the same program.

    It is `jax.distributed.initialize`, with settings under which the end of one process raises an error in the others
    instead of aborting them, and a sentence where a process never comes. What is left out is found by JAX on Slurm,
    Open MPI and Cloud TPUs. Processes that have joined stay joined: another call does nothing.

    Args:
        coordinator: Address of process 0, as host:port; the port must be free there.
        num_processes: How many processes there are.
        process_id: Which of them this is, counted from 0.
        timeout: Seconds to wait for the others.
    """
    given = {"coordinator": coordinator, "num_processes": num_processes, "process_id": process_id}
    if coordinator is not None and not coordinator.rpartition(":")[2].isdigit():
        raise InputError(f"the coordinator must be an address such as host:1234, got {coordinator!r:.60}.")
    if coordinator is not None and None in given.values():
        missing = " and ".join(name for name, value in given.items() if value is None)
        raise InputError(f"a coordinator must come with the number of processes and this one's id, got no {missing}.")
    if num_processes is not None and process_id is not None and not 0 <= process_id < num_processes:
        raise InputError(f"the process id must be from 0 to {num_processes - 1}, got {process_id}.")
    if jax.distributed.is_initialized():
        return
    jax.config.update("jax_enable_recoverability", True)  # else JAX aborts the processes that are left
    jax.config.update("jax_enable_preemption_service", False)  # it takes SIGTERM, which saves a checkpoint here
    problem: list[Exception] = []

    def initialize() -> None:
        try:
            jax.distributed.initialize(
                coordinator, num_processes, process_id, initialization_timeout=int(timeout) + GRACE
            )
        except Exception as error:
            problem.append(error)

    # In a thread of its own, as it cannot be interrupted.
    waiting = threading.Thread(target=initialize, daemon=True)
    waiting.start()
    waiting.join(timeout)
    if waiting.is_alive():
        raise InputError(
            f"not all processes came within {timeout:g} seconds (this is process {process_id} of {num_processes}, the "
            f"coordinator is {coordinator}); start the command on every host, and check that the coordinator's address "
            "can be reached."
        )
    if problem:
        raise InputError(
            f"the processes could not be joined ({str(problem[0]).partition(chr(10))[0]:.120}); give the coordinator, "
            "the number of processes and the id of this one."
        ) from problem[0]
    multihost_utils.sync_global_devices("joined")
    _yield_to_computation()


def _yield_to_computation() -> None:
    """Lower the priority of the threads that carry messages.

    Gloo's poll for messages without pause and took up to a third of the core that a process computed on; now they run
    while the computation waits for them. They are the threads without a name of their own that Python did not start.
    Only Linux sets priorities by thread.
    """
    tasks = Path("/proc/self/task")
    if not sys.platform.startswith("linux") or not tasks.is_dir():
        return
    ours, name = {thread.native_id for thread in threading.enumerate()}, Path("/proc/self/comm").read_text()
    for task in tasks.iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if int(task.name) not in ours and (task / "comm").read_text() == name:
                os.setpriority(os.PRIO_PROCESS, int(task.name), 19)


def leads() -> bool:
    """Whether this process decides and writes; alone, it does.

    Returns:
        True in process 0.
    """
    return jax.process_index() == 0


def several() -> bool:
    """Whether there are other processes."""
    return jax.process_count() > 1


def is_lost(error: Exception) -> bool:
    """Whether an error says that another process has ended or cannot be reached."""
    text = str(error)
    return several() and ("Gloo" in text or "coordination" in text or "UNAVAILABLE" in text or "ABORTED" in text)


def from_leader(make: Callable[[], bytes]) -> bytes:
    """What process 0 makes, for all; what it refuses with `InputError`, all refuse."""
    if not several():
        return make()
    content = b""
    if leads():
        try:
            content = b"+" + make()
        except InputError as problem:
            content = b"-" + str(problem).encode()
    size = int(multihost_utils.broadcast_one_to_all(np.int32(len(content))))
    padded = np.frombuffer(content.ljust(size, b" "), np.uint8)
    content = np.asarray(multihost_utils.broadcast_one_to_all(padded), np.uint8).tobytes()
    if content[:1] == b"-":
        raise InputError(content[1:].decode())
    return content[1:]


def decided(question: Callable[[], object]) -> bool:
    """Whether process 0 says yes; only that one is asked."""
    return from_leader(lambda: b"y" if question() else b"n") == b"y"


def anybody(flag: bool) -> bool:
    """Whether any process says yes."""
    return bool(np.any(multihost_utils.process_allgather(np.asarray(flag)))) if several() else flag


def check_agreement(facts: Mapping[str, bytes]) -> None:
    """Refuse, in every process, to go on where one knows other facts than process 0.

    Args:
        facts: What must be equal, by what to call it.
    """
    if not several():
        return
    differ = [from_leader(lambda content=content: content) != content for content in facts.values()]
    found = np.atleast_2d(multihost_utils.process_allgather(np.asarray(differ)))
    if found.any():
        process, fact = np.argwhere(found)[0]
        raise InputError(
            f"all processes must have the same settings and data, but process {process} has other "
            f"{list(facts)[fact]} than process 0; run the same command on every host."
        )


class AnyRequest:
    """Whether any process had a request by the time of the last call: one number, exchanged while others compute."""

    def __init__(self) -> None:
        self._sent: jax.Array | None = None

    def __call__(self, mine: bool) -> bool:
        """The answer is the same in all processes, which must call it equally often."""
        if not several():
            return mine
        before, self._sent = self._sent, _largest(mine)
        return before is not None and bool(before)


def _largest(mine: bool) -> jax.Array:
    mesh = data_mesh()
    return _compiled(mesh)(from_rows(mesh, np.full(jax.local_device_count(), mine, np.int32), mesh.size))


@cache
def _compiled(mesh: Mesh) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(jnp.max, out_shardings=NamedSharding(mesh, P()))
