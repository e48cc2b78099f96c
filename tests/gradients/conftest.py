"""Fixtures that other rooms share."""

from tests.music import cache, fivo_run, music, quickly_compiled

__all__ = ["cache", "fivo_run", "music", "quickly_compiled"]
