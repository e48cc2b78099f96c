"""Readers of other packages let whatever a malformed file provokes escape; here it becomes one sentence.

What a file says is quoted only as printable characters, so that no name or cell of it moves a terminal's cursor.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fivo.errors import InputError

_LONGEST = 120


@contextmanager
def refusing(where: str, what: str, advice: str) -> Iterator[None]:
    """Any exception in the block says that `where` is not a readable `what`, for which `advice` is given."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where} is not a readable {what} ({reason(error)}); {advice}.") from error


def shown(text: object) -> str:
    """A name or a cell of a file as a message quotes it: printable, and not too long."""
    whole = str(text)
    return repr(whole if len(whole) <= 60 else whole[:60] + "…")  # `repr` escapes what is not printable


def reason(error: object) -> str:
    """What another package or machine says is wrong: a line of printable characters, not too long."""
    text = re.sub(r"\.\s+([A-Z])", lambda match: f"; {match[1].lower()}", " ".join(str(error).split()).rstrip("."))
    shown = "".join(character if character.isprintable() else "?" for character in text[:_LONGEST])
    return shown or type(error).__name__
