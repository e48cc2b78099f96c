"""Options of commands that run on several devices, or as several processes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from jax.sharding import Mesh


@dataclass(kw_only=True)
class Machines:
    """Where a command computes; no part of a run's settings."""

    devices: Annotated[
        int | None, Parameter(help="Share the sequences out over this many devices; changes no estimate. [1]")
    ] = None
    distributed: Annotated[
        bool,
        Parameter(
            negative=(),
            help="This is one of several processes, one on each host, all started with the same command; Slurm or Open "
            "MPI says which.",
        ),
    ] = False
    coordinator: Annotated[
        str | None, Parameter(help="The same without Slurm: the address host:port of process 0, on every host.")
    ] = None
    num_processes: Annotated[int | None, Parameter(help="With --coordinator: how many processes there are.")] = None
    process_id: Annotated[int | None, Parameter(help="With --coordinator: which of them this is, from 0.")] = None
    timeout: Annotated[float, Parameter(help="Seconds to wait for the other processes. [300]")] = 300

    def mesh(self) -> "Mesh | None":
        """The devices, after the other processes have come; None for one device."""
        if self.distributed or self.coordinator is not None or self.num_processes is not None:
            # Read when JAX is loaded; problems with other processes are reported in one sentence.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
            from fivo.devices import join_processes

            with _quiet():
                join_processes(self.coordinator, self.num_processes, self.process_id, timeout=self.timeout)
        from fivo.devices import data_mesh
        from fivo.devices.processes import several

        return data_mesh(self.devices) if self.devices is not None or several() else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what libraries print while processes connect: standard output is for results."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
