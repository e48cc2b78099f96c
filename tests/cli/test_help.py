"""Help answers at once: nothing heavy is imported for it."""

import resource
import subprocess
import sys

import pytest

from fivo.settings import OPTIONS
from tests.cli.commands import run

COMMANDS = [
    [],
    ["fit"],
    ["train"],
    ["evaluate"],
    ["diagnose"],
    ["sample"],
    ["check"],
    ["data"],
    ["data", "fetch"],
    ["demo"],
    ["compare-gradients"],
    ["sweep"],
    ["report"],
]


LIBRARIES = "import cyclopts, cyclopts.help, msgspec, rich.console, rich.panel, rich.table"


def processor_time(*words: str) -> tuple[float, subprocess.CompletedProcess]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", *words], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), done


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_light_and_quick(command):
    program = "import sys; from fivo.cli import main\ntry: main()\nfinally: print(sorted(sys.modules), file=sys.stderr)"
    # Half a second is promised on an idle core, where the libraries alone take a fifth; other tests slow both down.
    for _ in range(3):
        least, _ = processor_time(LIBRARIES)
        spent, done = processor_time(program, *command, "--help")
        if spent < 2.5 * least:
            break
    assert "Usage: " in done.stdout
    assert not {"'jax'", "'numpy'", "'equinox'"} & set(done.stderr.strip("[]\n").split(", "))
    assert spent < 2.5 * least


def test_every_setting_is_an_option(capsys):
    """Under both names of the command."""
    shown = run(capsys, "fit", "--help").out
    for name in OPTIONS:
        assert f"--{name.replace('_', '-')}" in shown
    assert run(capsys, "train", "--help").out.replace("fivo train", "fivo fit") == shown


def test_no_command_shows_the_help(capsys):
    shown = run(capsys).out
    assert "fit" in shown
    assert "train" in shown
    assert run(capsys, "--version").out.strip()[0].isdigit()
