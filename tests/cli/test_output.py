"""Names of files cannot steer a terminal: control characters are printed as escapes, and markup as it is."""

import json
import shutil
from pathlib import Path

import pytest

from fivo._terminal.output import console, printable
from tests.cli.commands import Outcome, run
from tests.music import SETTINGS, options
from tests.sentences import assert_one_sentence

ODD = "o\x1b[31md\nd\r\x9b[/b]:smile:\u202e\x07"
SHOWN = "o\\x1b[31md\\nd\\r\\x9b[/b]:smile:\\u202e\\x07"


def assert_harmless(outcome: Outcome) -> None:
    lines = (outcome.out + outcome.err).split("\n")
    assert [line for line in lines if not line.isprintable()] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ± p̂ 音", "plain ± p̂ 音"),
        (ODD, SHOWN),
        ("\udcff", "\\udcff"),
        ("\u2028\x85\x7f\t", "\\u2028\\x85\\x7f\\t"),
    ],
)
def test_what_is_no_visible_sign_is_escaped(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        [ODD],
        ["data", ODD],
        ["fit", "--out", ODD, f"--{ODD}", "3"],
        ["fit", "--out", ODD, "--hidden", ODD],
        ["fit", "--out", "x", "--dataset", ODD],
        ["fit", "--out", "x", "--config", ODD],
        ["evaluate", ODD],
        ["sample", ODD, "--out", f"{ODD}.mid"],
        ["sample", "x", "--out", ODD],
        ["report", ODD, "--out", ODD],
        ["sweep", ODD],
        ["data", "check", ODD],
        ["data", "fetch", ODD],
        ["data", "fetch", "jsb", "--from", ODD],
    ],
)
def test_mistakes_with_odd_names(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, *arguments)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.rstrip("\n"), "\\x1b[31m")
    assert_harmless(outcome)


def test_everything_in_an_odd_place(capsys, tmp_path, monkeypatch, music_file):
    """A whole session: what succeeds prints names, too, and tables are made of them."""
    monkeypatch.chdir(tmp_path)
    Path(ODD).parent.mkdir()  # the slash of the markup is one of a path
    shutil.copy(music_file, f"{ODD}.npz")
    sizes = ["--particles", 2, "--repeats", 2]
    for arguments in (
        ["fit", *options({**SETTINGS, "dataset": f"{ODD}.npz", "steps": 40}), "--out", ODD],
        ["evaluate", ODD, *sizes, "--relative-to", ODD],
        ["diagnose", ODD, *sizes, "--sequences", 2, "--lineage-particles", 2],
        ["sample", ODD, "--length", 2, "--out", f"{ODD}.mid"],
        ["report", ODD, "--out", f"{ODD}.html", "--no-audio"],
        ["data", "check", f"{ODD}.npz"],
    ):
        outcome = run(capsys, *arguments)
        assert outcome.code == 0, outcome.err
        assert_harmless(outcome)
        assert "\\x1b[31m" in outcome.out.replace("\n", "").replace(" ", ""), arguments[0]
    shown = run(capsys, "evaluate", ODD, *sizes, "--json")
    assert json.loads(shown.out)["config"]["dataset"].endswith(f"{ODD}.npz")


def test_a_console_shows_text_as_it_is(capsys):
    console().print("[bold]not bold[/bold] :smile: [/x] \x1b[31mred\nsecond line")
    assert capsys.readouterr().out == "[bold]not bold[/bold] :smile: [/x] \\x1b[31mred\nsecond line\n"
