"""Settings of the library itself: `fivo.config.fuse(False)` turns the loop compiler off."""

from fivo._fuse import fuse

__all__ = ["fuse"]
