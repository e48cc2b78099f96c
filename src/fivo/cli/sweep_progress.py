"""Progress of a sweep: a line for every running job, and the time left for the whole."""

import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from fivo._terminal.output import console, note, printable

if TYPE_CHECKING:
    from fivo.experiments.status import Running, Status

QUIET_SECONDS = 60.0


class SweepProgress:
    """Lines rewritten on a terminal; elsewhere printed every minute and when a run ends. Both on standard error."""

    def __init__(self, label: str) -> None:
        self.label = label
        screen = console(stderr=True)
        self.live = Live(console=screen, transient=True, refresh_per_second=2) if screen.is_terminal else None
        self.spoke, self.said = time.monotonic(), (0, 0)

    def __enter__(self) -> "SweepProgress":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, status: "Status") -> None:
        """Report the progress of the sweep."""
        lines = lines_of(self.label, status)
        if self.live is not None:
            self.live.update(Group(*(Text(printable(line), no_wrap=True, overflow="ellipsis") for line in lines)))
        elif time.monotonic() - self.spoke >= QUIET_SECONDS or (status.trained, status.failed) != self.said:
            for line in lines:
                note(line)
            self.spoke, self.said = time.monotonic(), (status.trained, status.failed)


def lines_of(label: str, status: "Status") -> list[str]:
    """The whole in a line, then a line for every running job."""
    whole = f"{label}: {status.trained} of {status.total} runs trained"
    if status.failed:
        whole += f", {status.failed} failed"
    if status.seconds_left is not None:
        whole += f", at most {duration(status.seconds_left)} left"
    return [whole, *(f"  {_line(job)}" for job in status.running)]


def _line(job: "Running") -> str:
    if job.kind != "train":
        return f"{job.slug}: {'validating' if job.kind == 'validate' else 'evaluating'}"
    if not job.row:
        return f"{job.slug}: starting"
    rate = job.row.get("steps_per_second", 0.0)
    parts = [f"{job.row['step']}/{job.steps}", f"{rate:.1f} steps/s", f"bound {job.row['bound']:.3f}"]
    if rate:
        parts.insert(1, f"{duration((job.steps - job.row['step']) / rate)} left")
    return f"{job.slug}: {', '.join(parts)}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
