"""Ctrl-C and SIGTERM: a thread of our own ends the process, whatever the main thread is doing.

Python runs signal handlers in the main thread, between two instructions: never inside a compilation that takes minutes,
and an exception raised from there may be swallowed by a callback or leave a library in pieces. So no exception is
raised. The handler in C wakes a thread, which says one sentence and ends the process on the spot. That loses nothing,
as every file is written whole or not at all. Whoever wants to end by itself asks for some `patience` and looks at
`asked` from time to time.

Imports little, as it is loaded before everything else, and nothing later, when an import of the main thread may be
under way.
"""

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

WORDS = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}
RESUMABLE = ("sweep", "demo", "compare-gradients")
"""Commands other than training that resume where they were stopped."""
TRAINING = ("fit", "train")

_asked: list[int] = []
_patience: dict[int, float] = {}
_leaving = threading.Lock()


class EndRequested(BaseException):
    """Carries a command that was asked to end out to where it is ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def install() -> None:
    """Watch for signals from now on, including any that were blocked until now."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in WORDS:
        # What is ignored, like Ctrl-C in the background of a script, stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="signals", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WORDS)


def asked() -> bool:
    """Whether the process was asked to end."""
    return bool(_asked)


def check() -> None:
    """Stop here if the process was asked to end."""
    if _asked:
        raise EndRequested(_asked[0])


@contextmanager
def patience(seconds: float, *numbers: int) -> Iterator[None]:
    """Inside, these signals leave the main thread some seconds to end by itself."""
    _patience.update(dict.fromkeys(numbers, seconds))
    try:
        yield
    finally:
        for number in numbers:
            del _patience[number]


def leave(number: int) -> NoReturn:
    """Say what the signal has stopped and end the process."""
    if not _leaving.acquire(blocking=False):
        while True:  # the other thread is at it
            time.sleep(1)
    _say(f"fivo: {sentence(number, sys.argv[1:])}\n")
    os._exit(128 + number)


def sentence(number: int, arguments: Sequence[str]) -> str:
    """What was stopped by a signal, and whether the same command resumes it."""
    word = WORDS[signal.Signals(number)]
    command = arguments[0] if arguments else None
    if command in RESUMABLE:
        return f"{word}; run the same command again to resume."
    directory = _run_directory(arguments) if command in TRAINING else None
    if directory is None:
        return f"{word}."
    step = checkpoint_step(directory)
    if step is None:
        return f"{word}; there is no checkpoint to resume from, and the same command starts from the beginning."
    return f"{word}; run the same command again to resume from the checkpoint of step {step}."


def checkpoint_step(directory: Path) -> int | None:
    """The step of a run's latest checkpoint, read from its header without any library; None if there is none."""
    try:
        with open(directory / "checkpoints" / "latest.safetensors", "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return int(json.loads(header["__metadata__"]["fivo"])["step"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        return None


def _run_directory(arguments: Sequence[str]) -> Path | None:
    """What --out says, from the words themselves: they may not have been parsed yet."""
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if word == "--out" and following is not None:
            return Path(following)
        if word.startswith("--out="):
            return Path(word.removeprefix("--out="))
    return None


def _watch(reader: int) -> None:
    number = _next(reader)
    _asked.append(number)
    deadline = time.monotonic() + _patience.get(number, 0)
    while (left := deadline - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        if os.read(reader, 1)[0] == signal.SIGINT:  # somebody at the keyboard does not want to wait
            number = signal.SIGINT
            break
    leave(number)


def _next(reader: int) -> int:
    """Wait for a signal that is ours."""
    while (number := os.read(reader, 1)[0]) not in WORDS:
        pass
    return number


def _say(text: str) -> None:
    """Write to standard error without Python's buffers, which the main thread may hold; skipped if nobody reads it."""
    try:
        if os.isatty(2):
            text = f"\x1b[?25h\r\x1b[K{text}"  # a progress bar hides the cursor and leaves it behind the bar
        if select.select([], [2], [], 1.0)[1]:
            os.write(2, text.encode(errors="replace"))
    except OSError:
        return
