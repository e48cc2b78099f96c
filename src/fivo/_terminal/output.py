"""Everything printed goes through here: names of files cannot steer a terminal, and no terminal is too plain."""

import codecs
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN = {
    "±": "+/-", "½": "1/2", "×": "x", "≤": "<=", "≥": ">=", "→": "->", "–": "-", "—": "-", "−": "-", "‖": "||",
    "…": "...", "‘": "'", "’": "'", "“": '"', "”": '"', "\u0302": "^",
}  # fmt: skip
"""How our own signs look in ASCII; the last one is the hat of p̂."""


def prepare_streams() -> None:
    """Standard streams that exist, and that replace what a terminal cannot show."""
    # A closed stream's number would go to the next file that is opened, and what is printed would end up in there.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    codecs.register_error("fivo", _replaced)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process
        getattr(sys, name).reconfigure(errors="fivo")


def printable(text: str) -> str:
    """One line of text with control characters, and anything else invisible, as escapes such as \\x1b."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def say(text: str) -> None:
    """Print a line to standard output."""
    print(printable(text))


def say_json(value: object) -> None:
    """Print what msgspec can encode as one line of JSON in ASCII, which `printable` leaves as it is."""
    import msgspec

    print(json.dumps(msgspec.json.decode(msgspec.json.encode(value))))


def say_lines(text: str) -> None:
    """Print lines to standard output."""
    for line in text.rstrip("\n").split("\n"):
        say(line)


def complain(sentence: str) -> None:
    """Print a sentence to standard error, if that can be written."""
    note(f"fivo: {sentence}")


def note(text: str) -> None:
    """Print a line to standard error, if that can be written: what is lost there stops nothing."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        return


def console(*, stderr: bool = False) -> "Console":
    """A console for tables and progress that shows text as it is: no markup, no emoji, no control characters."""
    from rich.console import Console
    from rich.text import Text

    class Literal(Console):
        def render_str(self, text: str, **options: object) -> Text:
            lines = [printable(line) for line in text.split("\n")]
            return super().render_str("\n".join(lines), **options)  # type: ignore[arg-type]

    return Literal(stderr=stderr, markup=False, emoji=False, highlight=False)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    escaped = (PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in letters)
    return "".join(escaped), error.end
