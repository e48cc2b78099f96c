"""Progress on a terminal, and quiet lines where there is none."""

import sys
import time
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

QUIET_SECONDS = 10.0

AnyBar = TypeVar("AnyBar", bound="Bar")


class Bar:
    """A progress bar on a terminal; elsewhere a line every ten seconds. Both on standard error."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self.label, self.total = label, total
        console = Console(stderr=True)
        self.live = console.is_terminal
        self.spoke = time.monotonic()
        self.first: tuple[int, float] | None = None
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}")
        self.progress = Progress(*columns, console=console, disable=not self.live, transient=True)
        self.task = self.progress.add_task(label, total=total, note="")

    def __enter__(self: AnyBar) -> AnyBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def update(self, done: int, *, total: int | None = None, rate: float | None = None, note: str = "") -> None:
        """Say how far things are; `rate` is how much is done in a second, measured here if not given."""
        self.total = self.total if total is None else total
        note = ", ".join(part for part in (self._left(done, rate), note) if part)
        self.progress.update(self.task, completed=done, total=self.total, note=note, description=self.label)
        now = time.monotonic()
        if not self.live and (now - self.spoke > QUIET_SECONDS or done == self.total):
            of = "" if self.total is None else f"/{self.total}"
            print(f"{self.label} {done}{of}" + (f", {note}" if note else ""), file=sys.stderr, flush=True)
            self.spoke = now

    def _left(self, done: int, rate: float | None) -> str:
        now = time.monotonic()
        if self.first is None or done < self.first[0]:
            self.first = done, now
        if rate is None:
            start, since = self.first
            rate = (done - start) / (now - since) if now > since else 0.0
        if not rate or self.total is None:
            return ""
        seconds = round(max(self.total - done, 0) / rate)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


class TrainingProgress(Bar):
    """Rate, time left and the last bounds of a training run."""

    def __init__(self, steps: int, label: str = "training") -> None:
        super().__init__(label, steps)
        self.validation: float | None = None

    def __call__(self, row: dict[str, Any]) -> None:
        self.validation = row.get("validation", self.validation)
        rate = row["steps_per_second"]
        note = f"{rate:.1f} steps/s, bound {row['bound']:.3f}"
        if self.validation is not None:
            note += f", validation {self.validation:.3f}"
        self.update(row["step"], rate=rate, note=note)

    def summary(self, out: Path, result: dict[str, Any]) -> None:
        """What training ended with."""
        why = "stopped early (no improvement)" if result["stopped_early"] else "done"
        print(
            f"{why} after {result['steps']} steps and {result['seconds']:.0f} s; best validation bound "
            f"{result['best_validation']:.4f} nats per step at step {result['best_step']}; everything is in {out}"
        )
