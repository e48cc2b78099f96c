"""Run as one of two processes: `fivo` commands one after the other, of which one may be killed while it trains."""

import os
import signal
import sys

from fivo import _scoring
from fivo.cli import main
from fivo.training.session import Session
from tests.fast import UNOPTIMISED

_scoring.CPU_OPTIONS = UNOPTIMISED
THEN = "then"
advance = Session.advance


def advance_or_die(session: Session) -> object:
    if session.progress.step == int(os.environ["DIE_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(session)


if __name__ == "__main__":
    if "DIE_AT" in os.environ:
        Session.advance = advance_or_die
    words, code = sys.argv[1:], 0
    while words:
        end = words.index(THEN) if THEN in words else len(words)
        try:
            main(words[:end])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        words = words[end + 1 :]
    sys.stdout.flush()
    os._exit(code)  # as the command does
