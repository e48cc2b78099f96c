"""Training as every command does it: with progress, and with a checkpoint when the process is told to end."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fivo.cli import interrupts
from fivo.cli.progress import TrainingProgress

if TYPE_CHECKING:
    from fivo.data import Dataset
    from fivo.training import TrainConfig

TERMINATION_SECONDS = 5.0
"""How long SIGTERM waits for a checkpoint: machines that are taken away give ten seconds or more."""


def train_with_progress(
    config: "TrainConfig", out: Path, data: "Dataset", *, label: str = "training", override: bool = False
) -> dict[str, Any]:
    """Train a run to its end, or resume it; returns what `result.json` holds."""
    from fivo.training import train
    from fivo.training.loop import Stopped

    with interrupts.patience(TERMINATION_SECONDS, signal.SIGTERM):
        try:
            with TrainingProgress(config.steps, label) as progress:
                return train(config, out, data, override=override, report=progress, stop=interrupts.asked)
        except Stopped:
            interrupts.check()
            raise
