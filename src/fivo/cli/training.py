"""Training as every command does it: with progress, and with a checkpoint when the process is told to end."""

import signal
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fivo._terminal.progress import TrainingProgress
from fivo.cli import interrupts

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from fivo._run import Run
    from fivo.training import Callback, Plan

TERMINATION_SECONDS = 5.0
"""How long SIGTERM waits for a checkpoint: machines that are taken away give ten seconds or more."""


def train_with_progress(
    plan: "Plan",
    out: Path,
    *,
    label: str = "training",
    override: bool = False,
    callbacks: Sequence["Callback"] = (),
    mesh: "Mesh | None" = None,
) -> "Run":
    """Train a run to its end, or until a callback ends it, or resume it; of several processes, one shows progress."""
    from fivo._run import run_of
    from fivo.devices import leads
    from fivo.errors import InputError
    from fivo.training import Stopped, Watchers, train

    with interrupts.patience(TERMINATION_SECONDS, signal.SIGTERM):
        try:
            with TrainingProgress(plan.settings.training.steps, label) if leads() else nullcontext() as bar:
                watchers = Watchers(stop=interrupts.asked, callbacks=callbacks)
                if bar is not None:
                    watchers = replace(watchers, report=bar, compiling=bar.compiling)
                train(plan, out, override=override, watchers=watchers, mesh=mesh)
        except Stopped:
            interrupts.check()
            raise InputError(
                "another process of this run was asked to end; run the same command on every host to resume."
            ) from None
    return run_of(plan, out)
