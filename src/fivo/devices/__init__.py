"""More than one device, and more than one process: who computes what, and who says what."""

from fivo.devices.mesh import data_mesh
from fivo.devices.processes import join_processes, leads

__all__ = ["data_mesh", "join_processes", "leads"]
