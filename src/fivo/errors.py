"""The one exception for a user's mistake."""

__all__ = ["InputError"]


class InputError(ValueError):
    """What was given, what was expected and what to do, in one sentence.

    The command line prints the sentence and exits with code 2; the library raises it.
    """
