"""Run as one of two processes: `fivo` commands, of which one may be killed at a step of its training."""

import os
import signal
import sys

from fivo import _scoring
from fivo.__main__ import command
from fivo.training.session import Session
from tests.devices import own64
from tests.fast import UNOPTIMISED

_scoring.CPU_OPTIONS = UNOPTIMISED
advance = Session.advance


def advance_or_die(session: Session) -> object:
    if session.progress.step == int(os.environ["DIE_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(session)


if __name__ == "__main__":
    assert own64.SETTINGS
    if "DIE_AT" in os.environ:
        Session.advance = advance_or_die
    sys.argv[0] = "fivo"
    command()
