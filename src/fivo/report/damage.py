"""Result files that somebody changed or cut off."""

from collections.abc import Iterator
from contextlib import contextmanager

from fivo.errors import InputError


@contextmanager
def refusing_damage(*others: type[Exception]) -> Iterator[None]:
    """Turn what a summary of the wrong form causes, and `others`, into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, *others) as error:
        raise InputError(
            f"a summary or a result is damaged ({' '.join(str(error).split()):.90}); run `fivo sweep` again."
        ) from error
