"""`fivo data`: what is there, whether it is good, and how it gets there."""

from pathlib import Path

import pytest

from fivo.data.registry import KNOWN
from tests.cli.commands import run

JSB = Path(__file__).parents[3] / "shared" / "data" / "pianoroll" / "JSB Chorales.pickle.xz"


@pytest.fixture(autouse=True)
def nothing_there(tmp_path, monkeypatch):
    monkeypatch.delenv("FIVO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def test_list(capsys):
    outcome = run(capsys, "data", "list")
    assert outcome.code == 0
    assert all(name in outcome.out for name in KNOWN)
    assert "fivo data fetch jsb" in outcome.out
    assert "284 / 15,670" in outcome.out
    assert "bach: Four-part chorales of J. S. Bach, shipped with the package\n" in outcome.out


def test_check(capsys, music_file):
    assert "bach: good (train 284 / 15,670" in run(capsys, "data", "check").out
    outcome = run(capsys, "data", "check", music_file, "jsb")
    assert outcome.code == 2
    assert f"{music_file}: good (train 5 / 30" in outcome.out
    assert "fivo data fetch jsb" in outcome.err


def test_fetch_what_is_there(capsys):
    outcome = run(capsys, "data", "fetch", "bach")
    assert outcome.code == 0
    assert "it was there already" in outcome.out


def test_fetch_from_a_file(capsys, tmp_path):
    """The original files are not part of the project; this is about the way there."""
    if not JSB.exists():
        pytest.skip("the original music files are not beside the checkout (../shared/data/pianoroll)")
    outcome = run(capsys, "data", "fetch", "jsb", "--from", JSB, "--data-dir", tmp_path)
    assert outcome.code == 0, outcome.err
    assert str(tmp_path) in outcome.out
    assert "jsb: good" in run(capsys, "data", "check", "jsb", "--data-dir", tmp_path).out
