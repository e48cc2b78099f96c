"""The loop compiler: the same programs with less work inside loops. README.md in this folder explains what and why.

Everything here is private and means nothing but speed: with `fivo.config.fuse(False)` it steps aside.
"""

from fivo._fuse.loop import scan
from fivo._fuse.products import flatten_products
from fivo._fuse.recompute import recompute
from fivo._fuse.settings import enabled, fuse
from fivo._fuse.small import write_out
from fivo._fuse.threefry import particle_keys, straight

__all__ = ["enabled", "flatten_products", "fuse", "particle_keys", "recompute", "scan", "straight", "write_out"]
