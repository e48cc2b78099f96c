"""What happened since the last line of metrics."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from fivo.training.step import METRICS, Metrics, Trainer


class Window:
    """Metrics of some steps, left on the device until a line is due, and the time that they took."""

    def __init__(self, trainer: Trainer, before: Sequence[dict[str, float]] = ()) -> None:
        """`before` are metrics of earlier steps that have no line yet, from before the run was paused."""
        self.trainer = trainer
        self.started, self.compiling = time.monotonic(), trainer.compiling_seconds
        self.before = list(before)
        self.metrics: list[Metrics] = []

    def row(self, step: int) -> dict[str, Any]:
        """Averages, and the speed without the time spent compiling; `step` is the last one."""
        steps = self.unlogged()
        compiling = self.trainer.compiling_seconds - self.compiling
        seconds = time.monotonic() - self.started - compiling
        return {
            "step": step,
            **{name: float(np.mean([metrics[name] for metrics in steps])) for name in _ordered(steps[-1])},
            "steps_per_second": len(self.metrics) / max(seconds, 1e-9),
        }

    def first_bad(self, step: int) -> tuple[str, int] | None:
        """What first was not finite, and at which step; `step` is the last one."""
        steps = self.unlogged()
        for index, metrics in enumerate(steps):
            names = [name for name in _ordered(metrics) if not math.isfinite(metrics[name])]
            if names:
                return " and ".join(names).replace("_", " "), step - len(steps) + index + 1
        return None

    def unlogged(self) -> tuple[dict[str, float], ...]:
        """The exact metrics of every step, to continue with later."""
        fetched = jax.device_get(self.metrics)
        return (*self.before, *({name: float(value) for name, value in metrics.items()} for metrics in fetched))


def _ordered(metrics: Mapping[str, float]) -> list[str]:
    """Ours first, in their order; then the run's other metrics."""
    ours = [name for name in METRICS if name in metrics]
    return ours + sorted(name for name in metrics if name not in METRICS)
