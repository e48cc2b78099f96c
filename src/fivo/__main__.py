"""The `fivo` command, also as `python -m fivo`."""

import os
import signal
import sys
from contextlib import suppress


def command() -> None:
    """Run the command of this process's arguments, and end the process."""
    # Signals wait until `interrupts.install` can answer them, also across the `exec` of `large_pages`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    from fivo._terminal.output import prepare_streams
    from fivo.cli import interrupts, main
    from fivo.cli.pages import large_pages

    large_pages()
    prepare_streams()
    interrupts.install()
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    with suppress(OSError):  # of a command that succeeded, output was flushed where a failure is reported
        sys.stdout.flush()
    # Not by tearing down the interpreter: that takes a while in which Ctrl-C has no answer, and threads of compiled
    # programs may crash in it.
    os._exit(code)


if __name__ == "__main__":
    command()
