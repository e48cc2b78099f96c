"""`fivo diagnose`: a thin command over what the tests of inference look at closely."""

import json
import xml.etree.ElementTree as ElementTree

import msgspec
import pytest

from fivo.runs import Diagnosis, read_record
from tests.cli.commands import run
from tests.sentences import assert_one_sentence

FEW = ("--particles", "2,4", "--repeats", 2, "--sequences", 2, "--lineage-particles", 4)


def test_diagnose_writes_and_says_everything(capsys, fivo_run, music_file, tmp_path, monkeypatch):
    monkeypatch.setattr("fivo._run.open_run", lambda *_, **__: fivo_run)
    shown = run(capsys, "diagnose", fivo_run.directory.path, *FEW, "--lineage", "test:1", "--out", tmp_path / "found")
    assert shown.code == 0, shown.err
    found = read_record(tmp_path / "found" / "diagnosis.json", Diagnosis, run=fivo_run.directory.id)
    result = msgspec.to_builtins(found)
    said = " ".join(shown.out.split())
    assert all(sentence in said for sentence in result["verdict"]["sentences"])
    assert "2 (own)" in shown.out
    for name in ("diagnosis.svg", "lineage.svg"):
        assert ElementTree.parse(tmp_path / "found" / name).getroot().tag.endswith("svg")
    again = run(capsys, "diagnose", fivo_run.directory.path, *FEW, "--json", "--out", tmp_path / "again")
    assert json.loads(again.out) == result, "the same seed, the same diagnosis"


@pytest.mark.parametrize(
    ("option", "part"), [(("--particles", "4,x"), "'4,x'"), (("--lineage", "test"), "SPLIT:INDEX")]
)
def test_mistakes(capsys, fivo_run, option, part):
    outcome = run(capsys, "diagnose", fivo_run.directory.path, *option)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.rstrip("\n"), part)
