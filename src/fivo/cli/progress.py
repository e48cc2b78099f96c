"""Progress on a terminal, and quiet lines where there is none."""

import os
import sys
import time
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

QUIET_SECONDS = 10.0


def compilation_cache() -> None:
    """Keep compiled programs on disk, so that the next start of the same run takes seconds."""
    import jax

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(home / "fivo" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


class Bar:
    """A progress bar on a terminal; elsewhere a line every ten seconds, on standard error."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total = label, total
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.started = self.spoke = time.monotonic()
        self.first: int | None = None
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self.progress = Progress(*columns, console=self.console, disable=not self.live, transient=True)
        self.task = self.progress.add_task(label, total=total, note="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def update(self, done: int, note: str = "", label: str | None = None) -> None:
        """Say how far things are."""
        self.progress.update(self.task, completed=done, note=note, description=label or self.label)
        now = time.monotonic()
        self.first = done if self.first is None else self.first
        if not self.live and (now - self.spoke > QUIET_SECONDS or done == self.total):
            rate = max(done - self.first, 1) / max(now - self.started, 1e-9)
            left = time.strftime("%H:%M:%S", time.gmtime((self.total - done) / rate))
            print(
                f"{label or self.label} {done}/{self.total}, {left} left {note}".rstrip(), file=sys.stderr, flush=True
            )
            self.spoke = now


class TrainingProgress(Bar):
    """Rate, time left and the last bounds of a training run."""

    def __init__(self, steps: int, label: str = "training") -> None:
        super().__init__(label, steps)
        self.validation: float | None = None

    def __call__(self, row: dict[str, Any]) -> None:
        self.validation = row.get("validation", self.validation)
        note = f"{row['steps_per_second']:.1f} steps/s, bound {row['bound']:.3f}"
        if self.validation is not None:
            note += f", validation {self.validation:.3f}"
        self.update(row["step"], note)

    def summary(self, out: Path, result: dict[str, Any]) -> None:
        """What training ended with."""
        why = "stopped early (no improvement)" if result["stopped_early"] else "done"
        print(
            f"{why} after {result['steps']} steps and {result['seconds']:.0f} s; best validation bound "
            f"{result['best_validation']:.4f} nats per step at step {result['best_step']}; everything is in {out}"
        )
