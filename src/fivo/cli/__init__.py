"""The command line: parse, call, print. Heavy imports wait until a command runs."""

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2.

    Args:
        arguments: the words after `fivo`; those of this process by default.
    """
    # Not imported with the package: signals must be watched before the parser is loaded.
    from fivo.cli.commands import run

    run(arguments)
