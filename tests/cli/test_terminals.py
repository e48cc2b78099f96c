"""Terminals of eighty columns, without colour, and with completion."""

import os
import re
import shutil
import subprocess

import pytest

from fivo.data.registry import KNOWN
from tests.cli.commands import run
from tests.music import command_line
from tests.sentences import assert_one_sentence

COLOUR = re.compile(r"\x1b\[[\d;]*\b(?:[349][0-7]|38|48|10[0-7])[\d;]*m")
"""What sets a colour; bold text is none."""


def test_datasets_on_eighty_columns(capsys, monkeypatch, tmp_path):
    """No count, title, path or command is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FIVO_DATA", raising=False)
    shown = run(capsys, "data", "list").out
    assert "…" not in shown
    table, below = shown.split("\nbach: ")
    assert all(len(line) <= 80 for line in table.splitlines())
    assert f"{KNOWN['bach'].title}\n  found in " in below
    for name, known in KNOWN.items():
        assert name == "bach" or f"{name}: {known.title}\n  not found; run `fivo data fetch {name}`\n" in below
    assert "694 / 176,561   173 / 45,513   170 / 44,463" in table


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["data", "list"]])
def test_no_color_is_honoured(arguments):
    def printed(**variables: str) -> str:
        environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", **variables}
        done = subprocess.run(command_line(*arguments), env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert not COLOUR.search(printed(NO_COLOR="1"))
    if "--help" in arguments:
        assert COLOUR.search(printed()), "there is colour to leave out"


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR", "ZSH_CUSTOM", "ZSH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is installed")
def test_completion_in_bash(capsys, home):
    for _ in range(2):
        installed = run(capsys, "--install-completion", "--shell", "bash")
        assert installed.code == 0, installed.err
    (script,) = re.findall(r"^wrote (.+); completion works", installed.out)
    assert (home / ".bashrc").read_text().count(f'. "{script}"') == 1

    def offered(*words: str) -> set[str]:
        line = " ".join(words)
        program = (
            f". ~/.bashrc; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; "
            f"COMP_LINE={line!r}; COMP_POINT={len(line)}; COMPREPLY=(); "
            'name=$(complete -p fivo | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
            f"$name fivo {words[-1]!r} {words[-2]!r}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert offered("fivo", "eva") == {"evaluate"}
    assert offered("fivo", "data", "") >= {"list", "check", "fetch"}
    assert "--particles" in offered("fivo", "fit", "--parti")


def test_a_shell_that_is_not_known(capsys, home, monkeypatch):
    from cyclopts.completion import detect

    def unknown() -> str:
        raise detect.ShellDetectionError("none")

    monkeypatch.setattr(detect, "detect_shell", unknown)
    refused = run(capsys, "--install-completion")
    assert refused.code == 2
    assert_one_sentence(refused.err.rstrip("\n"), "--shell bash")


def test_a_home_that_cannot_be_written(capsys, home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("HOME", str(home / "file"))
    refused = run(capsys, "--install-completion", "--shell", "fish")
    assert refused.code == 2
    assert_one_sentence(refused.err.rstrip("\n"), "completion script")
