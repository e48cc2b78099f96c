"""What happened since the last line of metrics."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fivo.training.step import Metrics, Trainer


class Window:
    """Metrics of some steps, left on the device until a line is due, and the time that they took."""

    def __init__(self, trainer: Trainer, before: Sequence[Sequence[float]] = ()) -> None:
        """`before` are metrics of earlier steps that have no line yet, from before the run was paused."""
        self.trainer = trainer
        self.started, self.compiling = time.monotonic(), trainer.compiling_seconds
        self.before = list(before)
        self.metrics: list[Metrics] = []

    def row(self, step: int) -> dict[str, Any]:
        """Averages, and the speed without the time spent compiling; `step` is the last one."""
        values = self._values()
        compiling = self.trainer.compiling_seconds - self.compiling
        seconds = time.monotonic() - self.started - compiling
        return {
            "step": step,
            **dict(zip(Metrics._fields, values.mean(axis=0).tolist(), strict=True)),
            "steps_per_second": len(self.metrics) / max(seconds, 1e-9),
        }

    def first_bad(self, step: int) -> tuple[str, int] | None:
        """What first was not finite, and at which step; `step` is the last one."""
        bad = ~np.isfinite(self._values())
        if not bad.any():
            return None
        first = int(np.argmax(bad.any(axis=1)))
        names = [name for name, flag in zip(Metrics._fields, bad[first], strict=True) if flag]
        return " and ".join(names).replace("_", " "), step - len(bad) + first + 1

    def unlogged(self) -> tuple[tuple[float, ...], ...]:
        """The metrics of every step, exactly, to go on with later."""
        return tuple(tuple(row) for row in self._values().tolist())

    def _values(self) -> np.ndarray:
        return np.asarray([*self.before, *jax.device_get(self.metrics)], np.float64)
