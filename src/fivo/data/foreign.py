"""Readers of other packages let whatever a malformed file provokes escape; here it becomes one sentence."""

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


def reason(error: object) -> str:
    """What another package or machine says is wrong: a line of printable characters, not too long."""
    text = " ".join(str(error).split()).rstrip(".")
    shown = "".join(character if character.isprintable() else "?" for character in text[:_LONGEST])
    return shown or type(error).__name__
