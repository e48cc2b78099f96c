"""The command line in this process."""

from typing import NamedTuple

import pytest

from fivo.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture, *arguments: object) -> Outcome:
    """What `fivo ARGUMENTS` prints, and its exit code."""
    capsys.readouterr()
    try:
        main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    return Outcome(code, *capsys.readouterr())
