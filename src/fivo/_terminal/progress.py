"""Progress on a terminal, and quiet lines where there is none."""

import threading
import time
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fivo._terminal.output import console, note, printable, say
from fivo.runs import Result

QUIET_SECONDS = 10.0
PATIENCE_SECONDS = 2.0

AnyBar = TypeVar("AnyBar", bound="Bar")


class Bar:
    """A progress bar on a terminal; elsewhere a line every ten seconds. Both on standard error."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self.label, self.total = label, total
        screen = console(stderr=True)
        self.live = screen.is_terminal
        self.spoke = time.monotonic()
        self.first: tuple[int, float] | None = None
        label_column, note_column = (
            TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]")
        )
        columns = label_column, BarColumn(), MofNCompleteColumn(), note_column
        self.progress = Progress(*columns, console=screen, disable=not self.live, transient=True)
        self.task = self.progress.add_task(printable(label), total=total, note="")

    def __enter__(self: AnyBar) -> AnyBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def update(self, done: int, *, total: int | None = None, rate: float | None = None, detail: str = "") -> None:
        """Show how much is done; `rate` is how much is done in a second, measured here if not given."""
        self.total = self.total if total is None else total
        detail = ", ".join(part for part in (self._left(done, rate), detail) if part)
        label = printable(self.label)
        self.progress.update(self.task, completed=done, total=self.total, note=detail, description=label)
        now = time.monotonic()
        if not self.live and (now - self.spoke > QUIET_SECONDS or done == self.total):
            of = "" if self.total is None else f"/{self.total}"
            note(f"{self.label} {done}{of}" + (f", {detail}" if detail else ""))
            self.spoke = now

    def say(self, detail: str) -> None:
        """Show what takes time just now, beside how much is done."""
        self.progress.update(self.task, note=detail, description=printable(self.label))
        if not self.live:
            note(f"{self.label}: {detail}")
            self.spoke = time.monotonic()

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


class SeriesProgress(Bar):
    """How many series are done; without a terminal, nothing is printed in the first two seconds."""

    def __init__(self) -> None:
        super().__init__("starting")
        self._timer: threading.Timer | None = None
        self._began = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of all series are done."""
        self._settle()
        self.label = what
        if self.live or time.monotonic() - self._began > PATIENCE_SECONDS:
            self.update(done, total=total)

    def compiling(self, what: str) -> None:
        """Say that something is being compiled, if that takes long."""
        self._settle()
        if self.live:
            self.say(f"compiling {what}")
            return
        self._timer = threading.Timer(PATIENCE_SECONDS, lambda: self.say(f"compiling {what}"))
        self._timer.daemon = True
        self._timer.start()

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __exit__(self, *error: object) -> None:
        self._settle()
        super().__exit__(*error)


class TrainingProgress(Bar):
    """Rate, time left and the last bounds of a training run."""

    def __init__(self, steps: int, label: str = "training") -> None:
        super().__init__(label, steps)
        self.validation: float | None = None

    def __call__(self, row: dict[str, Any]) -> None:
        self.validation = row.get("validation", self.validation)
        rate = row["steps_per_second"]
        detail = f"{rate:.1f} steps/s, bound {row['bound']:.3f}"
        if self.validation is not None:
            detail += f", validation {self.validation:.3f}"
        self.update(row["step"], rate=rate, detail=detail)

    def compiling(self, what: str) -> None:
        """Say that something is being compiled, which takes seconds to minutes."""
        self.say(f"compiling {what}")


def summary(out: Path, result: Result) -> None:
    """Say what training ended with."""
    why = "stopped early (no improvement)" if result.stopped_early else "done"
    say(
        f"{why} after {result.steps} steps and {result.seconds:.0f} s; best validation bound "
        f"{result.best_validation:.4f} nats per step at step {result.best_step}; everything is in {out}"
    )
