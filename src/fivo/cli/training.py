"""Training as every command does it: with progress, and with a checkpoint when the process is told to end."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fivo._terminal.progress import TrainingProgress
from fivo.cli import interrupts

if TYPE_CHECKING:
    from fivo._run import Run
    from fivo.training import Callback, Plan

TERMINATION_SECONDS = 5.0
"""How long SIGTERM waits for a checkpoint: machines that are taken away give ten seconds or more."""


def train_with_progress(
    plan: "Plan", out: Path, *, label: str = "training", override: bool = False, callbacks: Sequence["Callback"] = ()
) -> "Run":
    """Train a run to its end, or until a callback ends it, or resume it."""
    from fivo._run import run_of
    from fivo.training import Stopped, Watchers, train

    with interrupts.patience(TERMINATION_SECONDS, signal.SIGTERM):
        try:
            with TrainingProgress(plan.settings.training.steps, label) as bar:
                watchers = Watchers(report=bar, compiling=bar.compiling, stop=interrupts.asked, callbacks=callbacks)
                train(plan, out, override=override, watchers=watchers)
        except Stopped:
            interrupts.check()
            raise
    return run_of(plan, out)
